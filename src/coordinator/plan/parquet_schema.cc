#include "coordinator/plan/parquet_schema.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "parquet/thrift_reader.h"

namespace parallelrun::coordinator {
namespace {

using parquet::ThriftReader;
using parquet::ThriftType;

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
constexpr int64_t kRequired = 0;
constexpr int64_t kRepeated = 2;

struct LogicalType {
  int64_t id = 0;  // 0: none
  int64_t first = 0;
  int64_t second = 0;
};

struct Element {
  int64_t physical = -1;
  int64_t repetition = kRequired;
  std::string_view name;
  int64_t children = 0;
  int64_t converted = -1;
  int64_t scale = 0;
  int64_t precision = 0;
  LogicalType logical;
};

bool IsInteger(ThriftType type) { return type == ThriftType::kI32 || type == ThriftType::kI64; }
bool IsBool(ThriftType type) { return type == ThriftType::kTrue || type == ThriftType::kFalse; }

// Calls `take(field)` for each field; what it does not take is skipped.
template <typename Take>
void EachField(ThriftReader& from, Take take) {
  ThriftReader::Field field;
  while (from.ok() && (field = from.NextField(field.id)).type != ThriftType::kStop) {
    if (!take(field)) from.Skip(field.type, 0);
  }
}

// Calls `take(index)` for each struct of a list.
template <typename Take>
void EachStruct(ThriftReader& from, Take take) {
  const auto list = from.List();
  if (list.type != ThriftType::kStruct && list.count > 0) from.Fail();
  for (uint64_t i = 0; i < list.count && from.ok(); ++i) take(i);
}

// Two numbers, which is what each of these types has: a boolean is 0 or 1, a union its member.
LogicalType ReadLogical(ThriftReader& from) {
  LogicalType logical;
  EachField(from, [&](const auto& type) {
    if (type.type != ThriftType::kStruct) return false;
    logical.id = type.id;
    EachField(from, [&](const auto& field) {
      int64_t value = 0;
      if (IsBool(field.type)) {
        value = field.type == ThriftType::kTrue ? 1 : 0;
      } else if (field.type == ThriftType::kI8) {
        value = from.Byte();
      } else if (IsInteger(field.type)) {
        value = from.Integer();
      } else if (field.type == ThriftType::kStruct) {
        EachField(from, [&](const auto& unit) { return value = unit.id, false; });
      } else {
        return false;
      }
      (field.id == 1 ? logical.first : logical.second) = value;
      return true;
    });
    return true;
  });
  return logical;
}

Element ReadElement(ThriftReader& from) {
  Element e;
  EachField(from, [&](const auto& field) {
    if (field.id == 4 && field.type == ThriftType::kBinary) return e.name = from.Binary(), true;
    if (field.id == 10 && field.type == ThriftType::kStruct) {
      return e.logical = ReadLogical(from), true;
    }
    if (!IsInteger(field.type)) return false;
    switch (field.id) {
      case 1: e.physical = from.Integer(); return true;
      case 3: e.repetition = from.Integer(); return true;
      case 5: e.children = from.Integer(); return true;
      case 6: e.converted = from.Integer(); return true;
      case 7: e.scale = from.Integer(); return true;
      case 8: e.precision = from.Integer(); return true;
      default: return false;
    }
  });
  return e;
}

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

std::optional<ParquetType> TypeOfLogical(const LogicalType& logical) {
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

std::optional<ParquetType> TypeOfConverted(const Element& e) {
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

ParquetType TypeOf(const Element& e) {
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

// A column while the footer is read.
struct Reading {
  ParquetColumn column;
  bool leaf = true;
  bool required = false;
  bool ranged = true;  // so far
  bool valued = false;
};

// The columns at the top, and which of the leaves each leaf among them is.
struct Schema {
  std::vector<Reading> columns;
  std::vector<size_t> column_of_leaf;  // kNested: within one
  static constexpr size_t kNested = SIZE_MAX;
};

Schema ReadSchema(ThriftReader& from) {
  Schema schema;
  uint64_t within = 0;  // elements that are still to come of the column at hand
  EachStruct(from, [&](uint64_t index) {
    const Element e = ReadElement(from);
    if (index == 0) return;  // the root
    const bool leaf = e.children <= 0;
    if (within > 0) {
      --within;
      schema.columns.back().column.type.text +=
          fmt::format(" {} {} {}", e.name, e.children, leaf ? TypeText(TypeOf(e)) : "");
    } else {
      Reading column;
      column.column.name = e.name;
      column.leaf = leaf && e.repetition != kRepeated;
      column.required = e.repetition == kRequired;
      if (column.leaf) {
        column.column.type = TypeOf(e);
      } else {
        column.column.type.text = fmt::format("nested {} {} {}", e.logical.id, e.converted,
                                              leaf ? TypeText(TypeOf(e)) : "");
      }
      schema.columns.push_back(std::move(column));
    }
    if (!leaf) within += static_cast<uint64_t>(e.children);
    if (leaf) {
      const bool top = within == 0 && schema.columns.back().leaf;
      schema.column_of_leaf.push_back(top ? schema.columns.size() - 1 : Schema::kNested);
    }
  });
  return schema;
}

struct Statistics {
  std::optional<int64_t> nulls;
  std::optional<int64_t> values;  // with the nulls
  std::string_view min;
  std::string_view max;
};

Statistics ReadStatistics(ThriftReader& from) {
  Statistics s;
  EachField(from, [&](const auto& chunk) {
    if (chunk.id != 3 || chunk.type != ThriftType::kStruct) return false;
    EachField(from, [&](const auto& data) {
      if (data.id == 5 && data.type == ThriftType::kI64) return s.values = from.Integer(), true;
      if (data.id != 12 || data.type != ThriftType::kStruct) return false;
      EachField(from, [&](const auto& field) {
        if (field.id == 3 && field.type == ThriftType::kI64) {
          return s.nulls = from.Integer(), true;
        }
        if (field.type != ThriftType::kBinary) return false;
        if (field.id == 5) return s.max = from.Binary(), true;
        if (field.id == 6) return s.min = from.Binary(), true;
        return false;
      });
      return true;
    });
    return true;
  });
  return s;
}

// As they are stored: 4 or 8 bytes, little-endian.
std::optional<int64_t> Stored(std::string_view bytes, bool is_unsigned) {
  if (bytes.size() == sizeof(int32_t)) {
    int32_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return is_unsigned ? int64_t{static_cast<uint32_t>(value)} : int64_t{value};
  }
  if (bytes.size() != sizeof(int64_t)) return std::nullopt;
  int64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof(value));
  if (is_unsigned && value < 0) return std::nullopt;
  return value;
}

void Take(const Statistics& s, Reading& into) {
  ParquetColumn& column = into.column;
  if (!into.required && s.nulls.value_or(1) != 0) column.nulls = true;
  if (s.values && s.nulls && *s.nulls == *s.values) return;  // no value
  const bool is_unsigned = column.type.kind == Kind::kUnsigned;
  const auto min = Stored(s.min, is_unsigned);
  const auto max = Stored(s.max, is_unsigned);
  if (!min || !max || *min > *max) {
    into.ranged = false;
    return;
  }
  if (!into.valued) column.range = {*min, *max};
  into.valued = true;
  column.range = {std::min(column.range->min, *min), std::max(column.range->max, *max)};
}

void ReadRowGroup(ThriftReader& from, Schema& schema) {
  EachField(from, [&](const auto& field) {
    if (field.id != 1 || field.type != ThriftType::kList) return false;
    size_t leaves = 0;
    EachStruct(from, [&](uint64_t leaf) {
      const Statistics statistics = ReadStatistics(from);
      if (++leaves > schema.column_of_leaf.size()) return from.Fail();
      const size_t column = schema.column_of_leaf[leaf];
      if (column != Schema::kNested) Take(statistics, schema.columns[column]);
    });
    if (leaves != schema.column_of_leaf.size()) from.Fail();
    return true;
  });
}

}  // namespace

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

Result<std::vector<ParquetColumn>> ParseParquetColumns(std::string_view footer) {
  ThriftReader from(footer);
  std::optional<Schema> schema;
  EachField(from, [&](const auto& field) {
    if (field.type != ThriftType::kList) return false;
    if (field.id == 2 && !schema) return schema = ReadSchema(from), true;
    if (field.id != 4 || !schema) return false;
    EachStruct(from, [&](uint64_t) { ReadRowGroup(from, *schema); });
    return true;
  });
  if (!from.ok() || !schema) {
    return Error{Code::kInvalid, "its footer is not that of a Parquet file"};
  }
  std::vector<ParquetColumn> columns;
  for (Reading& reading : schema->columns) {
    if (!reading.ranged) {
      reading.column.range.reset();
    } else if (!reading.valued) {
      reading.column.range = ParquetRange{};
    }
    columns.push_back(std::move(reading.column));
  }
  return columns;
}

}  // namespace parallelrun::coordinator
