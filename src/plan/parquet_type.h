// The types of Parquet's columns: as the schema of a file has them, and as readers see them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace parallelrun::plan {

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

// What is meant by the bytes, with the two numbers that such a type has at most.
struct ParquetLogical {
  int64_t id = 0;  // 0: none
  int64_t first = 0;
  int64_t second = 0;
};

// Of the schema: the root, a column, or what one is made of.
struct ParquetElement {
  int64_t physical = -1;
  int64_t repetition = 0;
  std::string_view name;
  int64_t children = 0;
  int64_t converted = -1;
  int64_t scale = 0;
  int64_t precision = 0;
  ParquetLogical logical;
};

ParquetType TypeOf(const ParquetElement& element);

}  // namespace parallelrun::plan
