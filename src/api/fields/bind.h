// Ties a field to the member of job.h that holds its value. Only the lists of fields include this:
// its templates are made once for each type of member.
#pragma once

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/enums.h"
#include "api/fields/field.h"
#include "base/time.h"

namespace parallelrun::fields {

// The JSON of a member's value; null where there is nothing to say. Sizes are text: beyond 2^53 a
// JSON number would lose digits.
inline nlohmann::json Said(bool value) { return value; }
inline nlohmann::json Said(int32_t value) { return value; }
inline nlohmann::json Said(uint64_t value) { return std::to_string(value); }
inline nlohmann::json Said(double value) {
  // Whole numbers without a fraction, so that 100 stays 100.
  if (value == std::trunc(value)) return static_cast<int64_t>(value);
  return value;
}
inline nlohmann::json Said(Duration value) {
  return std::chrono::duration_cast<seconds>(value).count();
}
inline nlohmann::json Said(const std::string& value) {
  return value.empty() ? nlohmann::json() : nlohmann::json(value);
}
inline nlohmann::json Said(const std::vector<std::string>& value) {
  return value.empty() ? nlohmann::json() : nlohmann::json(value);
}
inline nlohmann::json Said(const nlohmann::json& value) {
  return value.empty() && value.is_array() ? nlohmann::json() : value;
}
template <typename E>
requires std::is_enum_v<E> nlohmann::json Said(E value) { return EnumWord(value); }
template <typename E>
requires std::is_enum_v<E> nlohmann::json Said(const std::map<std::string, E>& value) {
  nlohmann::json out;
  for (const auto& [key, one] : value) out[key] = EnumWord(one);
  return out;
}
template <typename T>
nlohmann::json Said(const std::optional<T>& value) {
  return value ? Said(*value) : nlohmann::json();
}

// `write` takes the owner and says the field's value in it.
template <typename Owner, typename Write>
Field Written(std::string name, Shape shape, std::string text, Write write) {
  Field field{.name = std::move(name), .shape = std::move(shape), .text = std::move(text)};
  field.write = [write](const void* owner) { return write(*static_cast<const Owner*>(owner)); };
  field.initial = [write] { return write(Owner()); };
  return field;
}

template <typename Owner, typename T>
Field Bound(std::string name, T Owner::*member, Shape shape, std::string text) {
  return Written<Owner>(std::move(name), std::move(shape), std::move(text),
                        [member](const Owner& owner) { return Said(owner.*member); });
}

// Of a struct within the owner, as the options of a table within an input.
template <typename Owner, typename Part, typename T>
Field Bound(std::string name, Part Owner::*part, T Part::*member, Shape shape, std::string text) {
  return Written<Owner>(std::move(name), std::move(shape), std::move(text),
                        [part, member](const Owner& owner) { return Said(owner.*part.*member); });
}

}  // namespace parallelrun::fields
