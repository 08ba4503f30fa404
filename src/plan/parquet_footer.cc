#include "plan/parquet_footer.h"

#include <spdlog/fmt/fmt.h>

#include <limits>
#include <optional>

#include "parquet/thrift_reader.h"

namespace parallelrun::plan {
namespace {

using parquet::ThriftReader;
using parquet::ThriftType;

// A count that must be there and not be negative.
uint64_t Count(ThriftReader& from, const std::optional<int64_t>& value) {
  if (!value || *value < 0) return from.Fail(), 0;
  return static_cast<uint64_t>(*value);
}

ParquetRowGroup ReadRowGroup(ThriftReader& from) {
  std::optional<int64_t> rows;
  std::optional<int64_t> decoded;
  std::optional<int64_t> stored;
  ThriftReader::Field field;
  while (from.ok() && (field = from.NextField(field.id)).type != ThriftType::kStop) {
    const bool i64 = field.type == ThriftType::kI64;
    if (i64 && field.id == 2) {
      decoded = from.Integer();
    } else if (i64 && field.id == 3) {
      rows = from.Integer();
    } else if (i64 && field.id == 6) {
      stored = from.Integer();
    } else {
      from.Skip(field.type, 0);
    }
  }
  return {Count(from, rows), Count(from, stored ? stored : decoded)};
}

}  // namespace

Result<std::vector<ParquetRowGroup>> ParseParquetFooter(std::string_view footer) {
  ThriftReader from(footer);
  std::optional<int64_t> rows;
  std::optional<std::vector<ParquetRowGroup>> groups;
  uint64_t sum = 0;
  ThriftReader::Field field;
  while (from.ok() && (field = from.NextField(field.id)).type != ThriftType::kStop) {
    if (field.id == 3 && field.type == ThriftType::kI64) {
      rows = from.Integer();
    } else if (field.id == 4 && field.type == ThriftType::kList && !groups) {
      const auto list = from.List();
      if (list.type != ThriftType::kStruct && list.count > 0) from.Fail();
      groups.emplace();
      for (uint64_t i = 0; i < list.count && from.ok(); ++i) {
        groups->push_back(ReadRowGroup(from));
        // Every count is below 2^63, so the sum is right up to here.
        sum += groups->back().rows;
        if (sum > std::numeric_limits<int64_t>::max()) from.Fail();
      }
    } else {
      from.Skip(field.type, 0);
    }
  }
  const uint64_t total = Count(from, rows);
  if (!from.ok() || !groups) {
    return Error{Code::kInvalid, "its footer is not that of a Parquet file"};
  }
  // Some writers leave the number of all rows at 0. Readers go by the row groups anyway.
  if (sum != total && total != 0) {
    return Error{Code::kInvalid, fmt::format("its footer says that it has {} rows, and its row "
                                             "groups have {}",
                                             total, sum)};
  }
  return *std::move(groups);
}

}  // namespace parallelrun::plan
