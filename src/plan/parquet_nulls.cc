#include "plan/parquet_nulls.h"

#include <algorithm>
#include <string>

#include "base/bytes.h"
#include "parquet/thrift_reader.h"
#include "plan/decompressor.h"
#include "plan/snappy_begin.h"

namespace parallelrun::plan {
namespace {

using parquet::ThriftReader;
using parquet::ThriftType;

// Parquet's numbers.
enum PageType { kDataPage = 0, kDataPageTwo = 3 };
enum CodecNumber { kPlainPages = 0, kSnappyPages = 1, kGzipPages = 2, kZstdPages = 6 };
constexpr int64_t kRleLevels = 3;

// Of a page. Without a missing value its levels are a few bytes, and with one they soon say so.
constexpr size_t kPageFront = 4096;
constexpr uint64_t kMostIndex = 1024 * 1024;

Nulls ByCount(const std::optional<int64_t>& count) {
  if (!count || *count < 0) return Nulls::kUntold;  // some writers say -1 where they do not know
  return *count == 0 ? Nulls::kNone : Nulls::kSome;
}

struct PageHeader {
  std::optional<int64_t> type = {};
  std::optional<int64_t> stored = {};
  std::optional<int64_t> values = {};
  std::optional<int64_t> nulls = {};
  int64_t levels = -1;  // how they are encoded
};

// Calls `take(field)` for each field; what it does not take is skipped.
template <typename Take>
void EachPageField(ThriftReader& from, Take take) {
  ThriftReader::Field field;
  while (from.ok() && (field = from.NextField(field.id)).type != ThriftType::kStop) {
    if (!take(field)) from.Skip(field.type, 0);
  }
}

void ReadDataHeader(ThriftReader& from, bool two, PageHeader& into) {
  EachPageField(from, [&](const auto& field) {
    if (field.type == ThriftType::kI32) {
      if (field.id == 1) return into.values = from.Integer(), true;
      if (field.id == 2 && two) return into.nulls = from.Integer(), true;
      if (field.id == 3 && !two) return into.levels = from.Integer(), true;
    }
    if (two || field.id != 5 || field.type != ThriftType::kStruct) return false;
    EachPageField(from, [&](const auto& statistic) {
      if (statistic.id != 3 || statistic.type != ThriftType::kI64) return false;
      return into.nulls = from.Integer(), true;
    });
    return true;
  });
}

PageHeader ReadHeader(ThriftReader& from) {
  PageHeader header;
  EachPageField(from, [&](const auto& field) {
    if (field.type == ThriftType::kI32) {
      if (field.id == 1) return header.type = from.Integer(), true;
      if (field.id == 3) return header.stored = from.Integer(), true;
    }
    if (field.type != ThriftType::kStruct || (field.id != 5 && field.id != 8)) return false;
    return ReadDataHeader(from, field.id == 8, header), true;
  });
  return header;
}

std::string Decompressed(std::string_view body) {
  const auto decompressor = MakeDecompressor(body);
  if (decompressor == nullptr) return "";
  std::string front(kPageFront, '\0');
  size_t made = 0;
  while (made < front.size()) {
    const auto step = decompressor->Run(body, {front.data() + made, front.size() - made});
    if (!step.ok() || (step->used == 0 && step->made == 0)) break;
    body.remove_prefix(step->used);
    made += step->made;
  }
  front.resize(made);
  return front;
}

// The front of a page's content.
std::string FrontOf(std::string_view body, int64_t codec) {
  switch (codec) {
    case kPlainPages: return std::string(body);
    case kSnappyPages: return SnappyBegin(body, kPageFront);
    case kGzipPages:
    case kZstdPages: return Decompressed(body);
    default: return "";
  }
}

// A run of eight levels a byte. `values` are those that are still to come.
Nulls ByBits(Decoder& from, uint64_t groups, uint64_t& values) {
  for (uint64_t i = 0; i < groups && values > 0; ++i) {
    const uint64_t here = std::min<uint64_t>(values, 8);
    const auto all = static_cast<uint8_t>((1u << here) - 1);
    const uint8_t bits = from.U8();
    if (!from.ok()) return Nulls::kUntold;
    if ((bits & all) != all) return Nulls::kSome;
    values -= here;
  }
  return Nulls::kNone;
}

// By the levels of so many values, each 1, or 0 where it is missing: their length, and then runs.
Nulls ByLevels(std::string_view content, uint64_t values) {
  Decoder from(content);
  from.U32();
  while (values > 0) {
    uint64_t head = 0;
    uint8_t byte = 0x80;
    for (int shift = 0; byte >= 0x80 && shift < 63; shift += 7) {
      byte = from.U8();
      head |= uint64_t{byte & 0x7Fu} << shift;
    }
    if (byte >= 0x80 || head >> 1 == 0) return Nulls::kUntold;
    if ((head & 1) != 0) {
      const Nulls found = ByBits(from, head >> 1, values);
      if (found != Nulls::kNone) return found;
      continue;
    }
    const uint8_t level = from.U8();
    if (!from.ok()) return Nulls::kUntold;
    if (level == 0) return Nulls::kSome;
    values -= std::min(values, head >> 1);
  }
  return from.ok() ? Nulls::kNone : Nulls::kUntold;
}

// Reads no more than there is.
Result<std::string> ReadUpTo(const BlockReader& file, uint64_t offset, uint64_t most) {
  const uint64_t size = file.found().size;
  return file.ReadAt(offset, std::min(most, size - std::min(offset, size)));
}

Result<Nulls> ByPages(const BlockReader& file, const ParquetChunk& chunk, uint64_t& reads) {
  uint64_t at = 0;
  uint64_t values = 0;
  while (values < chunk.values) {
    if (reads == 0 || at >= chunk.bytes) return Nulls::kUntold;
    --reads;
    const uint64_t most = std::min<uint64_t>(kPageFront, chunk.bytes - at);
    const auto front = ReadUpTo(file, chunk.offset + at, most);
    if (!front.ok()) return front.error();
    const auto page = ReadPageNulls(*front, chunk.codec);
    if (!page || page->nulls != Nulls::kNone) return page ? page->nulls : Nulls::kUntold;
    values += page->values;
    at += page->size;
  }
  return Nulls::kNone;
}

}  // namespace

Nulls NullsByIndex(std::string_view index) {
  ThriftReader from(index);
  uint64_t pages = 0;
  bool some = false;
  bool untold = false;
  EachPageField(from, [&](const auto& field) {
    if (field.id != 5 || field.type != ThriftType::kList) return false;
    const auto list = from.List();
    if (list.type != ThriftType::kI64 && list.count > 0) return from.Fail(), true;
    for (uint64_t i = 0; i < list.count && from.ok(); ++i) {
      const Nulls page = ByCount(from.Integer());
      some = some || page == Nulls::kSome;
      untold = untold || page == Nulls::kUntold;
      ++pages;
    }
    return true;
  });
  if (!from.ok() || pages == 0) return Nulls::kUntold;
  if (some) return Nulls::kSome;
  return untold ? Nulls::kUntold : Nulls::kNone;
}

std::optional<PageNulls> ReadPageNulls(std::string_view bytes, int64_t codec) {
  ThriftReader from(bytes);
  const PageHeader header = ReadHeader(from);
  if (!from.ok() || !header.type || header.stored.value_or(-1) < 0) return std::nullopt;
  const uint64_t size = bytes.size() - from.left() + static_cast<uint64_t>(*header.stored);
  // A dictionary, say: no row misses a value by it.
  const bool one = header.type == kDataPage;
  if (!one && header.type != kDataPageTwo) return PageNulls{Nulls::kNone, 0, size};
  if (header.values.value_or(-1) < 0) return std::nullopt;
  PageNulls page{ByCount(header.nulls), static_cast<uint64_t>(*header.values), size};
  if (page.nulls == Nulls::kUntold && one && header.levels == kRleLevels) {
    const std::string_view body = bytes.substr(bytes.size() - from.left());
    const auto stored = static_cast<uint64_t>(*header.stored);
    page.nulls = ByLevels(FrontOf(body.substr(0, stored), codec), page.values);
  }
  return page;
}

Result<Nulls> FindNulls(const BlockReader& file, const ParquetChunk& chunk, uint64_t& reads) {
  if (chunk.index_bytes > 0 && chunk.index_bytes <= kMostIndex && reads > 0) {
    --reads;
    const auto index = ReadUpTo(file, chunk.index_offset, chunk.index_bytes);
    if (!index.ok()) return index.error();
    if (const Nulls told = NullsByIndex(*index); told != Nulls::kUntold) return told;
  }
  return ByPages(file, chunk, reads);
}

}  // namespace parallelrun::plan
