#include "plan/parquet_schema.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "parquet/thrift_reader.h"

namespace parallelrun::plan {
namespace {

using parquet::ThriftReader;
using parquet::ThriftType;

using Kind = ParquetType::Kind;

constexpr int64_t kRequired = 0;
constexpr int64_t kRepeated = 2;

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
ParquetLogical ReadLogical(ThriftReader& from) {
  ParquetLogical logical;
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

ParquetElement ReadElement(ThriftReader& from) {
  ParquetElement e;
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

// A column while the footer is read.
struct Reading {
  ParquetColumn column;
  bool leaf = true;
  bool required = false;
  bool told = false;   // that it has nulls
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
    const ParquetElement e = ReadElement(from);
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
  std::optional<int64_t> nulls;   // some writers say -1 where they do not know
  std::optional<int64_t> values;  // with the nulls
  std::string_view min;
  std::string_view max;
  ParquetChunk chunk;
};

uint64_t NotNegative(int64_t value) { return static_cast<uint64_t>(std::max<int64_t>(value, 0)); }

Statistics ReadStatistics(ThriftReader& from) {
  Statistics s;
  uint64_t dictionary = 0;  // where its page begins, if there is one
  EachField(from, [&](const auto& chunk) {
    if (IsInteger(chunk.type)) {
      if (chunk.id == 6) return s.chunk.index_offset = NotNegative(from.Integer()), true;
      if (chunk.id == 7) return s.chunk.index_bytes = NotNegative(from.Integer()), true;
    }
    if (chunk.id != 3 || chunk.type != ThriftType::kStruct) return false;
    EachField(from, [&](const auto& data) {
      if (IsInteger(data.type)) {
        switch (data.id) {
          case 4: s.chunk.codec = from.Integer(); return true;
          case 5: s.values = from.Integer(); return true;
          case 7: s.chunk.bytes = NotNegative(from.Integer()); return true;
          case 9: s.chunk.offset = NotNegative(from.Integer()); return true;
          case 11: dictionary = NotNegative(from.Integer()); return true;
          default: return false;
        }
      }
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
  if (s.nulls && *s.nulls < 0) s.nulls.reset();
  s.chunk.values = NotNegative(s.values.value_or(0));
  if (dictionary > 0) s.chunk.offset = std::min(s.chunk.offset, dictionary);
  return s;
}

// Whether pandas makes another type of the column where values are missing.
bool NullsDecide(const ParquetType& type) {
  return type.kind == Kind::kBoolean || type.kind == Kind::kInteger || type.kind == Kind::kUnsigned;
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
  if (!into.required && s.nulls.value_or(1) != 0) {
    into.told = into.told || s.nulls;
    column.nulls = true;
    if (!into.told && NullsDecide(column.type)) column.untold.push_back(s.chunk);
  }
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
    if (reading.told) reading.column.untold.clear();
    if (!reading.ranged) {
      reading.column.range.reset();
    } else if (!reading.valued) {
      reading.column.range = ParquetRange{};
    }
    columns.push_back(std::move(reading.column));
  }
  return columns;
}

}  // namespace parallelrun::plan
