// Internal to the operator: reading JSON that others wrote, without a word when a key is missing or
// of another type. Never throws. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "operator/status/status.h"

namespace parallelrun::lenient {

// The value at `key`, or null (also when `object` is no object).
inline const nlohmann::json& At(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

inline std::string Text(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = At(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

inline int64_t Integer(const nlohmann::json& object, const char* key, int64_t missing = 0) {
  const nlohmann::json& value = At(object, key);
  return value.is_number_integer() ? value.get<int64_t>() : missing;
}

inline std::optional<int64_t> MaybeInteger(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = At(object, key);
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

inline double Number(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = At(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

inline bool Boolean(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = At(object, key);
  return value.is_boolean() && value.get<bool>();
}

inline std::optional<WallTime> Time(const nlohmann::json& object, const char* key) {
  return ParseRfc3339(Text(object, key));
}

// The items of a list; none when it is no list.
inline const nlohmann::json& List(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kEmpty = nlohmann::json::array();
  const nlohmann::json& value = At(object, key);
  return value.is_array() ? value : kEmpty;
}

}  // namespace parallelrun::lenient
