#include "kube/api_error.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/json.h"
#include "kube/resource.h"

namespace parallelrun::kube {
namespace {

constexpr int64_t kLongestRetryAfter = 3600;  // seconds; more is not believed

// What a server means that sends no Status, such as a proxy before it.
const char* ReasonOf(int status) {
  switch (status) {
    case 400: return "BadRequest";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "NotFound";
    case 405: return "MethodNotAllowed";
    case 409: return "Conflict";
    case 410: return "Expired";
    case 413: return "RequestEntityTooLarge";
    case 415: return "UnsupportedMediaType";
    case 422: return "Invalid";
    case 429: return "TooManyRequests";
    case 503: return "ServiceUnavailable";
    case 504: return "Timeout";
    default: return status >= 500 ? "InternalError" : "Unknown";
  }
}

Code CodeOf(const ApiError& error) {
  if (error.AlreadyExists()) return Code::kExists;
  switch (error.status) {
    case 400:
    case 405:
    case 413:
    case 415:
    case 422: return Code::kInvalid;
    case 401:
    case 403: return Code::kPermission;
    case 404: return Code::kNotFound;
    case 409:
    case 410: return Code::kStale;
    case 429:
    case 503: return Code::kUnavailable;
    case 504: return Code::kTimeout;
    default: return Code::kInternal;
  }
}

std::optional<Duration> RetryAfter(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (text.empty() || error != std::errc() || stopped != end || value < 0) return std::nullopt;
  return seconds(std::min(value, kLongestRetryAfter));
}

// One past the brace that closes the one at `open`; nothing when none does.
std::optional<size_t> CloseOf(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at + 1;
  }
  return std::nullopt;
}

// Where validation refuses a whole structure, the server prints it as Go source (or JSON, newer
// ones), up to kilobytes, in front of the words that say what is wrong with it. A scalar stays.
std::string WithoutStructures(std::string text) {
  constexpr std::string_view kBefore = "Invalid value: ";
  constexpr std::string_view kAfter = ": ";
  constexpr std::string_view kType =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.*&[]/";
  for (size_t at = text.find(kBefore); at != std::string::npos; at = text.find(kBefore, at + 1)) {
    const size_t open = text.find_first_not_of(kType, at + kBefore.size());
    if (open == std::string::npos || text[open] != '{') continue;
    const std::optional<size_t> close = CloseOf(text, open);
    if (!close || text.compare(*close, kAfter.size(), kAfter) != 0) continue;
    text.erase(at, *close + kAfter.size() - at);
  }
  return text;
}

// What a value is that JSON calls `found`, such as "bool" or "number 1.5".
std::string WordsOfValue(std::string_view found) {
  constexpr std::string_view kNumber = "number ";
  if (found == "string") return "text";
  if (found == "number") return "a number";
  if (found == "bool") return "true or false";
  if (found == "array") return "a list";
  if (found == "object") return "an object";
  return std::string(found.starts_with(kNumber) ? found.substr(kNumber.size()) : found);
}

std::string WordsOfGoType(std::string_view type) {
  if (type == "string") return "text";
  if (type == "bool") return "true or false";
  if (type.starts_with("int") || type.starts_with("uint")) return "a whole number";
  if (type.starts_with("float")) return "a number";
  return type.starts_with("[]") ? "a list" : "an object";
}

// Of a value of the wrong type the server tells what Go's decoder told it:
// "json: cannot unmarshal bool into Go struct field PodSpec.spec.nodeSelector of type string".
std::string WithoutGoFields(std::string text) {
  constexpr std::string_view kBefore = "json: cannot unmarshal ";
  constexpr std::string_view kInto = " into Go struct field ";
  constexpr std::string_view kType = " of type ";
  const size_t begin = text.find(kBefore);
  const size_t into = text.find(kInto, begin);  // of npos, npos
  const size_t type = text.find(kType, into);
  if (type == std::string::npos) return text;
  // The field's path follows the name of the structure that it is in.
  const size_t dot = text.find('.', into);
  if (dot > type) return text;
  const std::string_view all = text;
  const size_t found = begin + kBefore.size();
  const size_t after = type + kType.size();
  const size_t end = std::min(text.find_first_of(" ,;", after), text.size());
  const std::string words = std::string(all.substr(dot + 1, type - dot - 1)) + ": " +
                            WordsOfGoType(all.substr(after, end - after)) + " belongs here, not " +
                            WordsOfValue(all.substr(found, into - found));
  return text.replace(begin, end - begin, words);
}

void TakeStatus(const nlohmann::json& body, ApiError& error) {
  if (TextAt(body, "/kind") != "Status") return;
  if (const std::string reason = TextAt(body, "/reason"); !reason.empty()) error.reason = reason;
  if (const std::string text = TextAt(body, "/message"); !text.empty()) {
    error.message = WithoutGoFields(WithoutStructures(text));
  }
  const int64_t value = lenient::Integer(lenient::At(body, "details"), "retryAfterSeconds");
  if (value > 0) error.retry_after = seconds(std::min(value, kLongestRetryAfter));
}

void Finish(const std::string& call, ApiError& error) {
  if (error.reason.empty()) error.reason = ReasonOf(error.status);
  if (error.message.empty()) error.message = "the server sent no message";
  error.message = Printable(call + ": " + error.message + " (" + error.reason + ")", kShownLongest);
  error.code = CodeOf(error);
}

}  // namespace

bool ApiError::TooLargeResourceVersion() const {
  return status == 504 && message.find("Too large resource version") != std::string::npos;
}

bool ApiError::BeingDeleted() const {
  return status == 409 && message.find("object is being deleted") != std::string::npos;
}

bool ApiError::NamespaceTerminating() const {
  return status == 403 && message.find("because it is being terminated") != std::string::npos;
}

bool ApiError::Transient() const {
  if (status == 0) return code != Code::kInvalid;
  return status == 429 || status >= 500;
}

ApiError ApiErrorOf(const HttpResponse& response, const std::string& call) {
  ApiError error;
  error.status = response.status;
  if (const auto body = ParseJson(response.body)) {
    TakeStatus(*body, error);
  } else if (!response.body.empty()) {
    error.message = response.body;
  }
  if (const auto after = RetryAfter(response.Header("Retry-After"))) error.retry_after = after;
  Finish(call, error);
  return error;
}

ApiError ApiErrorOf(const Error& error) {
  ApiError result;
  result.message = error.message;
  result.code = error.code;
  return result;
}

ApiError ApiErrorOfStatus(const nlohmann::json& status, const std::string& call) {
  ApiError error;
  error.status = static_cast<int>(lenient::Integer(status, "code", 500));
  TakeStatus(status, error);
  if (error.Is("Expired") || error.Is("Gone")) error.status = 410;
  Finish(call, error);
  return error;
}

}  // namespace parallelrun::kube
