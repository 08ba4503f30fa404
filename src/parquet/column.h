// The columns of Parquet files that ParallelRun writes: few types, so that the rows of two
// mini-batches rarely differ in them (docs/formats.md). Each value may be missing. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parallelrun::parquet {

enum class Type : uint8_t {
  kNull,  // no row has a value
  kBool,
  kInt64,
  kDouble,
  kText,
  kBytes,
  kDate,
  kTime,          // microseconds since midnight
  kTimestamp,     // microseconds, of no zone
  kTimestampUtc,  // microseconds
};

struct Column {
  std::string name;
  Type type = Type::kNull;
  bool list = false;  // each value is a list of values of `type`, which is not kNull

  friend bool operator==(const Column&, const Column&) = default;
};

// As the head of a row group says it (docs/worker-protocol.md): "int64".
std::string_view TypeWord(Type type);
std::optional<Type> TypeOf(std::string_view word);

// For messages: "int64", "list of double".
std::string TypeText(const Column& column);

// Parquet's numbers.
enum class Physical : int32_t { kBoolean = 0, kInt32 = 1, kInt64 = 2, kDouble = 5, kByteArray = 6 };
enum class Codec : int32_t { kNone = 0, kZstd = 6 };
enum class Encoding : int32_t { kPlain = 0, kRle = 3 };

Physical PhysicalOf(Type type);

}  // namespace parallelrun::parquet
