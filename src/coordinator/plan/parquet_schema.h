// The columns of a Parquet file, as its footer tells them: of each the type, whether it has nulls,
// and the range of its integers. Bytes are not trusted: parsing ends with an error or a value, in
// time and memory bounded by their number. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun::coordinator {

// Of a column, as readers see it.
struct ParquetType {
  enum class Kind : uint8_t {
    kOther,  // nested, or not known: `text` is all of it
    kNull,   // without a value
    kBoolean,
    kInteger,   // of `bits`
    kUnsigned,  // of `bits`
    kFloat,     // of `bits`
    kText,
    kBytes,
    kDate,
    kTime,       // in `unit`
    kTimestamp,  // in `unit`, of a zone where `utc`
    kDecimal,    // of `precision` digits, `scale` of them behind the point
  };
  Kind kind = Kind::kOther;
  int bits = 0;
  int unit = 0;  // digits behind the second: 3, 6 or 9
  bool utc = false;
  int precision = 0;
  int scale = 0;
  std::string text = {};
  bool operator==(const ParquetType&) const = default;
};

// For people: "int64", "timestamp[us, UTC]".
std::string TypeText(const ParquetType& type);

struct ParquetRange {
  int64_t min = 0;
  int64_t max = 0;
};

struct ParquetColumn {
  std::string name;
  ParquetType type;
  bool nulls = false;  // it has some, or the footer does not say
  // Of what is stored as integers, where the footer tells it of each row group and it is below 2⁶³;
  // from 0 to 0 where there is no value.
  std::optional<ParquetRange> range = {};
};

// The columns at the top. `footer` is the FileMetaData alone; kInvalid, without the name of the
// file, when it is not one.
Result<std::vector<ParquetColumn>> ParseParquetColumns(std::string_view footer);

}  // namespace parallelrun::coordinator
