#include "base/json.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace parallelrun {
namespace {

using nlohmann::json;

bool TooDeep(std::string_view text, int most) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > most) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

std::optional<json> ParseJson(std::string_view text, int most_depth) {
  if (TooDeep(text, most_depth)) return std::nullopt;
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return std::nullopt;
  return value;
}

std::optional<json> ParseObject(std::string_view text, int most_depth) {
  std::optional<json> value = ParseJson(text, most_depth);
  if (value && !value->is_object()) value.reset();
  return value;
}

// --- strict

Members::Members(const json& object, std::string what) : object_(object), what_(std::move(what)) {
  if (!object_.is_object()) Fail("it is no JSON object");
}

std::string Members::Text(const char* key) {
  const json* const value = Find(key, json::value_t::string);
  return value == nullptr ? "" : value->get<std::string>();
}

std::string Members::TextOr(const char* key, std::string missing) {
  return Has(key) ? Text(key) : std::move(missing);
}

uint64_t Members::Unsigned(const char* key, uint64_t most) {
  const json* const value = Find(key, json::value_t::number_unsigned);
  if (value == nullptr) return 0;
  const auto number = value->get<uint64_t>();
  if (number > most) Fail(fmt::format("\"{}\" is above {}", key, most));
  return number;
}

uint64_t Members::UnsignedOr(const char* key, uint64_t most, uint64_t missing) {
  return Has(key) ? Unsigned(key, most) : missing;
}

bool Members::Boolean(const char* key) {
  const json* const value = Find(key, json::value_t::boolean);
  return value != nullptr && value->get<bool>();
}

bool Members::BooleanOr(const char* key, bool missing) { return Has(key) ? Boolean(key) : missing; }

json Members::Value(const char* key, json::value_t type) {
  const json* const value = Find(key, type);
  return value == nullptr ? json(type) : *value;
}

json Members::ValueOr(const char* key, json missing) {
  return Has(key) ? Value(key, missing.type()) : std::move(missing);
}

void Members::Fail(const std::string& why) {
  if (status_.ok()) status_ = Error{Code::kInvalid, what_ + ": " + why};
}

const json* Members::Find(const char* key, json::value_t type) {
  if (!status_.ok()) return nullptr;
  const auto it = object_.find(key);
  if (it != object_.end() && it->type() == type) return &*it;
  Fail(fmt::format("\"{}\" is missing or has the wrong type", key));
  return nullptr;
}

// --- lenient

namespace lenient {

const json& At(const json& object, const char* key) {
  static const json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

const json& AtPath(const json& value, const char* path) {
  static const json kNull;
  const json::json_pointer place(path);
  return value.contains(place) ? value.at(place) : kNull;
}

std::string Text(const json& object, const char* key) {
  const json& value = At(object, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::optional<int64_t> MaybeInteger(const json& object, const char* key) {
  const json& value = At(object, key);
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX})
    return std::nullopt;
  return value.get<int64_t>();
}

int64_t Integer(const json& object, const char* key, int64_t missing) {
  return MaybeInteger(object, key).value_or(missing);
}

uint64_t Unsigned(const json& object, const char* key, uint64_t missing) {
  const json& value = At(object, key);
  // What a program has put there itself may be held as a signed one.
  const bool whole =
      value.is_number_unsigned() || (value.is_number_integer() && value.get<int64_t>() >= 0);
  return whole ? value.get<uint64_t>() : missing;
}

double Number(const json& object, const char* key) {
  const json& value = At(object, key);
  return value.is_number() ? value.get<double>() : 0;
}

bool Boolean(const json& object, const char* key) {
  const json& value = At(object, key);
  return value.is_boolean() && value.get<bool>();
}

const json& List(const json& object, const char* key) {
  static const json kEmpty = json::array();
  const json& value = At(object, key);
  return value.is_array() ? value : kEmpty;
}

}  // namespace lenient
}  // namespace parallelrun
