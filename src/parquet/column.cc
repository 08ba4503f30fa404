#include "parquet/column.h"

#include <array>
#include <utility>

namespace parallelrun::parquet {
namespace {

constexpr std::array<std::pair<Type, std::string_view>, 10> kWords = {{
    {Type::kNull, "null"},
    {Type::kBool, "bool"},
    {Type::kInt64, "int64"},
    {Type::kDouble, "double"},
    {Type::kText, "text"},
    {Type::kBytes, "bytes"},
    {Type::kDate, "date"},
    {Type::kTime, "time"},
    {Type::kTimestamp, "timestamp"},
    {Type::kTimestampUtc, "timestampUtc"},
}};

}  // namespace

std::string_view TypeWord(Type type) {
  for (const auto& [known, word] : kWords) {
    if (known == type) return word;
  }
  return "";
}

std::optional<Type> TypeOf(std::string_view word) {
  for (const auto& [type, known] : kWords) {
    if (known == word) return type;
  }
  return std::nullopt;
}

std::string TypeText(const Column& column) {
  return (column.list ? "list of " : "") + std::string(TypeWord(column.type));
}

Physical PhysicalOf(Type type) {
  switch (type) {
    case Type::kBool: return Physical::kBoolean;
    case Type::kNull:
    case Type::kDate: return Physical::kInt32;
    case Type::kInt64:
    case Type::kTime:
    case Type::kTimestamp:
    case Type::kTimestampUtc: return Physical::kInt64;
    case Type::kDouble: return Physical::kDouble;
    case Type::kText:
    case Type::kBytes: break;
  }
  return Physical::kByteArray;
}

}  // namespace parallelrun::parquet
