#include "plan/parquet_type.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace parallelrun::plan {
namespace {

using Kind = ParquetType::Kind;

// Numbers of the format: physical types, then converted ones and logical ones.
enum Physical { kBool, kInt32, kInt64, kInt96, kFloat32, kDouble, kByteArray, kFixed };
enum Converted {
  kUtf8 = 0,
  kEnum = 4,
  kDecimalOld = 5,
  kDateOld = 6,
  kTimeMillis = 7,
  kTimeMicros = 8,
  kTimestampMillis = 9,
  kTimestampMicros = 10,
  kUint8 = 11,
  kUint64 = 14,
  kInt8 = 15,
  kInt64Old = 18,
  kJson = 19,
};
enum Logical {
  kString = 1,
  kEnumeration = 4,
  kDecimal = 5,
  kDate = 6,
  kTime = 7,
  kTimestamp = 8,
  kWhole = 10,
  kUnknown = 11,
  kJsonText = 12,
  kFloat16 = 15,
};

ParquetType Of(Kind kind) {
  ParquetType type;
  type.kind = kind;
  return type;
}

ParquetType OfBits(Kind kind, int64_t bits) {
  ParquetType type = Of(kind);
  type.bits = static_cast<int>(bits);
  return type;
}

ParquetType OfUnit(Kind kind, int unit, bool utc) {
  ParquetType type = Of(kind);
  type.unit = unit;
  type.utc = utc;
  return type;
}

ParquetType OfDecimal(int64_t precision, int64_t scale) {
  ParquetType type = Of(Kind::kDecimal);
  type.precision = static_cast<int>(std::clamp<int64_t>(precision, 0, 1000));
  type.scale = static_cast<int>(std::clamp<int64_t>(scale, -1000, 1000));
  return type;
}

std::optional<ParquetType> TypeOfLogical(const ParquetLogical& logical) {
  const int unit = static_cast<int>(std::clamp<int64_t>(logical.second, 1, 3)) * 3;
  switch (logical.id) {
    case kString:
    case kEnumeration:
    case kJsonText: return Of(Kind::kText);
    case kDecimal: return OfDecimal(logical.second, logical.first);
    case kDate: return Of(Kind::kDate);
    case kTime: return OfUnit(Kind::kTime, unit, false);
    case kTimestamp: return OfUnit(Kind::kTimestamp, unit, logical.first != 0);
    case kWhole:
      return OfBits(logical.second != 0 ? Kind::kInteger : Kind::kUnsigned,
                    std::clamp<int64_t>(logical.first, 8, 64));
    case kUnknown: return Of(Kind::kNull);
    case kFloat16: return OfBits(Kind::kFloat, 16);
    default: return std::nullopt;
  }
}

std::optional<ParquetType> TypeOfConverted(const ParquetElement& e) {
  const int64_t converted = e.converted;
  if (converted >= kUint8 && converted <= kUint64) {
    return OfBits(Kind::kUnsigned, 8 << (converted - kUint8));
  }
  if (converted >= kInt8 && converted <= kInt64Old) {
    return OfBits(Kind::kInteger, 8 << (converted - kInt8));
  }
  switch (converted) {
    case kUtf8:
    case kEnum:
    case kJson: return Of(Kind::kText);
    case kDecimalOld: return OfDecimal(e.precision, e.scale);
    case kDateOld: return Of(Kind::kDate);
    case kTimeMillis: return OfUnit(Kind::kTime, 3, false);
    case kTimeMicros: return OfUnit(Kind::kTime, 6, false);
    case kTimestampMillis: return OfUnit(Kind::kTimestamp, 3, true);
    case kTimestampMicros: return OfUnit(Kind::kTimestamp, 6, true);
    default: return std::nullopt;
  }
}

}  // namespace

ParquetType TypeOf(const ParquetElement& e) {
  if (auto type = TypeOfLogical(e.logical)) return *std::move(type);
  if (auto type = TypeOfConverted(e)) return *std::move(type);
  switch (e.physical) {
    case kBool: return Of(Kind::kBoolean);
    case kInt32: return OfBits(Kind::kInteger, 32);
    case kInt64: return OfBits(Kind::kInteger, 64);
    case kInt96: return OfUnit(Kind::kTimestamp, 9, false);
    case kFloat32: return OfBits(Kind::kFloat, 32);
    case kDouble: return OfBits(Kind::kFloat, 64);
    case kByteArray:
    case kFixed: return Of(Kind::kBytes);
    default: return Of(Kind::kOther);
  }
}

std::string TypeText(const ParquetType& type) {
  const char* unit = type.unit == 3 ? "ms" : type.unit == 6 ? "us" : "ns";
  switch (type.kind) {
    case Kind::kNull: return "null";
    case Kind::kBoolean: return "boolean";
    case Kind::kInteger: return fmt::format("int{}", type.bits);
    case Kind::kUnsigned: return fmt::format("uint{}", type.bits);
    case Kind::kFloat: return fmt::format("float{}", type.bits);
    case Kind::kText: return "text";
    case Kind::kBytes: return "bytes";
    case Kind::kDate: return "date";
    case Kind::kTime: return fmt::format("time[{}]", unit);
    case Kind::kTimestamp: return fmt::format("timestamp[{}{}]", unit, type.utc ? ", UTC" : "");
    case Kind::kDecimal: return fmt::format("decimal({}, {})", type.precision, type.scale);
    case Kind::kOther: break;
  }
  return type.text.empty() ? "a type that is not known" : "nested";
}

}  // namespace parallelrun::plan
