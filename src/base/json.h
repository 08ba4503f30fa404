// Reading JSON that others wrote. There are two ways. Strict: what is missing or of another type is
// an error, told with its name; for what this release writes itself. Lenient: it is passed over;
// for what an older or a newer program, a stranger or user code wrote. Never throws. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun {

// The library's own functions on a value recurse: a text of brackets alone would end the program.
inline constexpr int kMostJsonDepth = 128;

// nullopt: it is no JSON, or lists and objects lie deeper in each other than `most_depth`.
std::optional<nlohmann::json> ParseJson(std::string_view text, int most_depth = kMostJsonDepth);

// The same for a text that is an object; nullopt for any other.
std::optional<nlohmann::json> ParseObject(std::string_view text, int most_depth = kMostJsonDepth);

// The members of one object, strictly: the first that is missing or of another type is the error,
// and what is read behind it is empty. The object must outlive this.
class Members {
 public:
  // `what` it is, for the error's words.
  Members(const nlohmann::json& object, std::string what);

  std::string Text(const char* key);
  std::string TextOr(const char* key, std::string missing);
  uint64_t Unsigned(const char* key, uint64_t most);
  uint64_t UnsignedOr(const char* key, uint64_t most, uint64_t missing);
  bool Boolean(const char* key);
  bool BooleanOr(const char* key, bool missing);
  uint32_t U32(const char* key) { return static_cast<uint32_t>(Unsigned(key, UINT32_MAX)); }
  nlohmann::json Value(const char* key, nlohmann::json::value_t type);
  // Of the type of `missing`.
  nlohmann::json ValueOr(const char* key, nlohmann::json missing);
  // What only the caller can see; the first one stays.
  void Fail(const std::string& why);
  const Status& status() const { return status_; }
  bool Has(const char* key) const { return object_.is_object() && object_.contains(key); }

 private:
  const nlohmann::json* Find(const char* key, nlohmann::json::value_t type);

  const nlohmann::json& object_;
  const std::string what_;
  Status status_;
};

namespace lenient {

// The value at `key`, or null (also when `object` is no object).
const nlohmann::json& At(const nlohmann::json& object, const char* key);
// The same for a way through several: "/metadata/name", "/items/0".
const nlohmann::json& AtPath(const nlohmann::json& value, const char* path);
// "" unless it is a text.
std::string Text(const nlohmann::json& object, const char* key);
// Whole numbers that the type holds.
std::optional<int64_t> MaybeInteger(const nlohmann::json& object, const char* key);
int64_t Integer(const nlohmann::json& object, const char* key, int64_t missing = 0);
uint64_t Unsigned(const nlohmann::json& object, const char* key, uint64_t missing = 0);
double Number(const nlohmann::json& object, const char* key);
bool Boolean(const nlohmann::json& object, const char* key);
// The items of a list; none when it is no list.
const nlohmann::json& List(const nlohmann::json& object, const char* key);

}  // namespace lenient
}  // namespace parallelrun
