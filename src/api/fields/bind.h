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
#include "api/fields.h"
#include "api/fields/field.h"
#include "api/parse.h"
#include "base/time.h"

namespace parallelrun::api::fields {

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

// A value of a job file into a member, which stays as it is when the value is wrong.
void ReadInto(const Shape& shape, const Value& value, bool& out);
void ReadInto(const Shape& shape, const Value& value, int32_t& out);
void ReadInto(const Shape& shape, const Value& value, uint64_t& out);  // a size
void ReadInto(const Shape& shape, const Value& value, double& out);
void ReadInto(const Shape& shape, const Value& value, Duration& out);
void ReadInto(const Shape& shape, const Value& value, std::string& out);
void ReadInto(const Shape& shape, const Value& value, std::vector<std::string>& out);
template <typename E>
requires std::is_enum_v<E>
void ReadInto(const Shape&, const Value& value, E& out) { out = value.Enum<E>().value_or(out); }
template <typename T>
void ReadInto(const Shape& shape, const Value& value, std::optional<T>& out) {
  const size_t before = value.problems.size();
  T read{};
  ReadInto(shape, value, read);
  if (value.problems.size() == before) out = read;
}

// `write` takes the owner and says the field's value in it; `read` takes a value, the owner and the
// target.
template <typename Owner, typename Write, typename Read>
Field Both(std::string name, Shape shape, std::string text, Write write, Read read) {
  Field field{.name = std::move(name), .shape = std::move(shape), .text = std::move(text)};
  field.write = [write](const void* owner) { return write(*static_cast<const Owner*>(owner)); };
  field.initial = [write] { return write(Owner()); };
  field.read = [read](const Value& value, void* owner, Target target) {
    read(value, *static_cast<Owner*>(owner), target);
  };
  return field;
}

// Read as its shape says.
template <typename Owner, typename T>
Field Bound(std::string name, T Owner::*member, Shape shape, std::string text) {
  return Both<Owner>(
      std::move(name), shape, std::move(text),
      [member](const Owner& owner) { return Said(owner.*member); },
      [member, shape](const Value& value, Owner& owner, Target) {
        ReadInto(shape, value, owner.*member);
      });
}

// Read by a function of its own, which takes the value and the member.
template <typename Owner, typename T, typename Read>
Field Bound(std::string name, T Owner::*member, Shape shape, std::string text, Read read) {
  return Both<Owner>(
      std::move(name), std::move(shape), std::move(text),
      [member](const Owner& owner) { return Said(owner.*member); },
      [member, read](const Value& value, Owner& owner, Target) { read(value, owner.*member); });
}

// Of a struct within the owner, as the options of a table within an input.
template <typename Owner, typename Part, typename T>
Field BoundIn(std::string name, Part Owner::*part, T Part::*member, Shape shape, std::string text) {
  return Both<Owner>(
      std::move(name), shape, std::move(text),
      [part, member](const Owner& owner) { return Said(owner.*part.*member); },
      [part, member, shape](const Value& value, Owner& owner, Target) {
        ReadInto(shape, value, owner.*part.*member);
      });
}
template <typename Owner, typename Part, typename T, typename Read>
Field BoundIn(std::string name, Part Owner::*part, T Part::*member, Shape shape, std::string text,
              Read read) {
  return Both<Owner>(
      std::move(name), std::move(shape), std::move(text),
      [part, member](const Owner& owner) { return Said(owner.*part.*member); },
      [part, member, read](const Value& value, Owner& owner, Target) {
        read(value, owner.*part.*member);
      });
}

}  // namespace parallelrun::api::fields
