#include "parquet/footer.h"

#include <spdlog/fmt/fmt.h>

#include <limits>

#include "base/bytes.h"
#include "base/version.h"
#include "parquet/thrift_writer.h"

namespace parallelrun::parquet {
namespace {

constexpr int32_t kVersion2 = 2;
constexpr int32_t kOptional = 1;
constexpr int32_t kRepeated = 2;
constexpr uint64_t kChunkBytes = 64;  // about

// Of values, as older readers know it: ConvertedType.
constexpr int32_t kUtf8 = 0;
constexpr int32_t kList = 3;
constexpr int32_t kDateType = 6;
constexpr int32_t kTimestampMicros = 10;

// The fields of the union LogicalType.
constexpr int16_t kStringOf = 1;
constexpr int16_t kListOf = 3;
constexpr int16_t kDateOf = 6;
constexpr int16_t kTimeOf = 7;
constexpr int16_t kTimestampOf = 8;
constexpr int16_t kNothing = 11;

void Logical(ThriftWriter& to, int16_t which) {
  to.BeginStruct(10);
  to.BeginStruct(which);
  to.EndStruct();
  to.EndStruct();
}

void LogicalMicros(ThriftWriter& to, int16_t which, bool utc) {
  to.BeginStruct(10);
  to.BeginStruct(which);
  to.Boolean(1, utc);
  to.BeginStruct(2);
  to.BeginStruct(2);
  to.EndStruct();
  to.EndStruct();
  to.EndStruct();
  to.EndStruct();
}

void Group(ThriftWriter& to, std::string_view name, int32_t repetition, bool list) {
  to.BeginElement();
  to.I32(3, repetition);
  to.Binary(4, name);
  to.I32(5, 1);
  if (list) {
    to.I32(6, kList);
    Logical(to, kListOf);
  }
  to.EndStruct();
}

void Values(ThriftWriter& to, std::string_view name, Type type) {
  to.BeginElement();
  to.I32(1, static_cast<int32_t>(PhysicalOf(type)));
  to.I32(3, kOptional);
  to.Binary(4, name);
  switch (type) {
    case Type::kText:
      to.I32(6, kUtf8);
      Logical(to, kStringOf);
      break;
    case Type::kDate:
      to.I32(6, kDateType);
      Logical(to, kDateOf);
      break;
    case Type::kTime: LogicalMicros(to, kTimeOf, false); break;
    case Type::kTimestamp: LogicalMicros(to, kTimestampOf, false); break;
    case Type::kTimestampUtc:
      to.I32(6, kTimestampMicros);
      LogicalMicros(to, kTimestampOf, true);
      break;
    case Type::kNull: Logical(to, kNothing); break;
    case Type::kBool:
    case Type::kInt64:
    case Type::kDouble:
    case Type::kBytes: break;
  }
  to.EndStruct();
}

void Schema(ThriftWriter& to, const std::vector<Column>& columns) {
  uint64_t elements = 1;
  for (const Column& column : columns) elements += column.list ? 3 : 1;
  to.List(2, ThriftType::kStruct, elements);
  to.BeginElement();
  to.Binary(4, "schema");
  to.I32(5, static_cast<int32_t>(columns.size()));
  to.EndStruct();
  for (const Column& column : columns) {
    if (column.list) {
      Group(to, column.name, kOptional, true);
      Group(to, "list", kRepeated, false);
    }
    Values(to, column.list ? "element" : column.name, column.type);
  }
}

void WriteChunk(ThriftWriter& to, const Column& column, const Chunk& chunk) {
  to.BeginElement();
  to.I64(2, 0);  // where the same stands before the footer: nowhere
  to.BeginStruct(3);
  to.I32(1, static_cast<int32_t>(PhysicalOf(column.type)));
  to.List(2, ThriftType::kI32, 2);
  to.I32Element(static_cast<int32_t>(Encoding::kPlain));
  to.I32Element(static_cast<int32_t>(Encoding::kRle));
  to.List(3, ThriftType::kBinary, column.list ? 3 : 1);
  to.BinaryElement(column.name);
  if (column.list) {
    to.BinaryElement("list");
    to.BinaryElement("element");
  }
  to.I32(4, static_cast<int32_t>(chunk.codec));
  to.I64(5, static_cast<int64_t>(chunk.values));
  to.I64(6, static_cast<int64_t>(chunk.decoded));
  to.I64(7, static_cast<int64_t>(chunk.bytes));
  to.I64(9, static_cast<int64_t>(chunk.offset));
  to.EndStruct();
  to.EndStruct();
}

}  // namespace

void Footer::Add(uint32_t rows, const std::vector<Chunk>& chunks) {
  uint64_t bytes = 0;
  uint64_t decoded = 0;
  ThriftWriter to(groups_);
  to.List(1, ThriftType::kStruct, chunks.size());
  for (size_t i = 0; i < chunks.size(); ++i) {
    WriteChunk(to, columns_[i], chunks[i]);
    bytes += chunks[i].bytes;
    decoded += chunks[i].decoded;
  }
  to.I64(2, static_cast<int64_t>(decoded));
  to.I64(3, rows);
  to.I64(6, static_cast<int64_t>(bytes));
  to.EndStruct();
  ++count_;
  rows_ += rows;
}

Result<std::string> Footer::End() const {
  std::string end;
  ThriftWriter to(end);
  to.I32(1, kVersion2);
  Schema(to, columns_);
  to.I64(3, static_cast<int64_t>(rows_));
  to.List(4, ThriftType::kStruct, count_);
  end += groups_;
  to.Binary(6, std::string("parallelrun version ") + kVersion);
  to.EndStruct();
  if (end.size() > std::numeric_limits<int32_t>::max()) {
    return Error{Code::kInvalid,
                 fmt::format("its {} row groups of {} columns make a footer of {} bytes, and "
                             "Parquet has at most 2 GiB; return fewer columns, or write "
                             "output.format: jsonl",
                             count_, columns_.size(), end.size())};
  }
  const auto length = static_cast<uint32_t>(end.size());
  Encoder(end).U32(length);
  end += kMagic;
  return end;
}

uint64_t Footer::Estimate(uint64_t groups) const {
  uint64_t group = kChunkBytes;
  for (const Column& column : columns_) group += kChunkBytes + column.name.size();
  return (groups + 1) * group;
}

}  // namespace parallelrun::parquet
