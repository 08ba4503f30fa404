#include "parquet/page.h"

#include <limits>

#include "base/bytes.h"
#include "parquet/column.h"
#include "parquet/thrift_reader.h"
#include "parquet/thrift_writer.h"

namespace parallelrun::parquet {
namespace {

constexpr int32_t kDataPage = 0;

using Integers = std::optional<int64_t>;

// A number of Thrift's i32 that is not negative.
bool Count(const Integers& value, uint32_t& count) {
  if (!value || *value < 0 || *value > std::numeric_limits<int32_t>::max()) return false;
  count = static_cast<uint32_t>(*value);
  return true;
}

bool Is(const Integers& value, Encoding encoding) {
  return value == static_cast<int32_t>(encoding);
}

// The header of the values; false where they are encoded in a way that is not taken.
bool ReadValues(ThriftReader& from, uint32_t& values) {
  Integers count, encoding, definitions, repetitions;
  ThriftReader::Field field;
  while (from.ok() && (field = from.NextField(field.id)).type != ThriftType::kStop) {
    const bool number = field.type == ThriftType::kI32;
    if (number && field.id == 1) {
      count = from.Integer();
    } else if (number && field.id == 2) {
      encoding = from.Integer();
    } else if (number && field.id == 3) {
      definitions = from.Integer();
    } else if (number && field.id == 4) {
      repetitions = from.Integer();
    } else {
      from.Skip(field.type, 0);
    }
  }
  return Count(count, values) && Is(encoding, Encoding::kPlain) &&
         Is(definitions, Encoding::kRle) && Is(repetitions, Encoding::kRle);
}

// Levels of so many zeros: one run, with its length in front.
void ZeroLevels(uint32_t values, std::string& out) {
  std::string run;
  for (uint64_t left = uint64_t{values} << 1; left > 0 || run.empty(); left >>= 7) {
    run += static_cast<char>(left >= 0x80 ? left | 0x80 : left);
  }
  run += '\0';
  Encoder(out).Text(run);
}

}  // namespace

std::optional<ReadPage> ReadPageHeader(std::string_view bytes) {
  ThriftReader from(bytes);
  Integers type, decoded, stored;
  Page page;
  bool values = false;
  ThriftReader::Field field;
  while (from.ok() && (field = from.NextField(field.id)).type != ThriftType::kStop) {
    const bool number = field.type == ThriftType::kI32;
    if (number && field.id == 1) {
      type = from.Integer();
    } else if (number && field.id == 2) {
      decoded = from.Integer();
    } else if (number && field.id == 3) {
      stored = from.Integer();
    } else if (field.type == ThriftType::kStruct && field.id == 5) {
      values = ReadValues(from, page.values);
    } else {
      from.Skip(field.type, 0);
    }
  }
  if (!from.ok() || type != kDataPage || !values) return std::nullopt;
  if (!Count(decoded, page.decoded) || !Count(stored, page.bytes)) return std::nullopt;
  return ReadPage{page, bytes.size() - from.left()};
}

std::string PageHeader(const Page& page) {
  std::string header;
  ThriftWriter to(header);
  to.I32(1, kDataPage);
  to.I32(2, static_cast<int32_t>(page.decoded));
  to.I32(3, static_cast<int32_t>(page.bytes));
  to.BeginStruct(5);
  to.I32(1, static_cast<int32_t>(page.values));
  to.I32(2, static_cast<int32_t>(Encoding::kPlain));
  to.I32(3, static_cast<int32_t>(Encoding::kRle));
  to.I32(4, static_cast<int32_t>(Encoding::kRle));
  to.EndStruct();
  to.EndStruct();
  return header;
}

std::string MissingValues(uint32_t values, bool list) {
  std::string page;
  if (list) ZeroLevels(values, page);  // each begins a row
  ZeroLevels(values, page);            // and is missing
  return page;
}

}  // namespace parallelrun::parquet
