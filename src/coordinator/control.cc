#include "coordinator/control.h"

#include <spdlog/fmt/fmt.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "api/fields/told.h"
#include "base/escape.h"
#include "base/json.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr int64_t kMostNodes = 1'000'000;
constexpr size_t kMaxPodEnds = 1000;
constexpr size_t kMaxReason = 100;

template <typename T>
bool Whole(const json& value, int64_t least, int64_t most, T& out) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most))
    return false;
  const auto number = value.get<int64_t>();
  if (number < least) return false;
  out = static_cast<T>(number);
  return true;
}

template <typename T>
bool Whole(const json& value, int64_t least, int64_t most, std::optional<T>& out) {
  T number{};
  if (!Whole(value, least, most, number)) return false;
  out = number;
  return true;
}

bool Flag(const json& value, bool& out) {
  if (!value.is_boolean()) return false;
  out = value.get<bool>();
  return true;
}

bool ParsePodEnd(const json& value, PodEnd& end) {
  const json& reason = lenient::At(value, "reason");
  if (!reason.is_string()) return false;
  end.reason = reason.get<std::string>().substr(0, kMaxReason);
  const json& exit_code = lenient::At(value, "exitCode");
  return Whole(lenient::At(value, "node"), 0, 999'999, end.node) &&
         Whole(lenient::At(value, "incarnation"), 1, INT64_MAX, end.incarnation) &&
         (exit_code.is_null() || Whole(exit_code, INT32_MIN, INT32_MAX, end.exit_code));
}

bool ParsePodEnds(const json& value, std::vector<PodEnd>& ends) {
  if (!value.is_array() || value.size() > kMaxPodEnds) return false;
  for (const json& one : value) {
    if (!ParsePodEnd(one, ends.emplace_back())) return false;
  }
  return true;
}

}  // namespace

job::Thresholds ControlRequest::ChangedFrom(const job::Thresholds& before) const {
  const job::Thresholds said = job::ThresholdsOf(spec);
  job::Thresholds after = before;
  const auto change = [](auto& threshold, const auto& anew, auto otherwise) {
    if (anew && *anew != threshold.value_or(otherwise)) threshold = anew;
  };
  change(after.error_threshold, said.error_threshold, int64_t{-1});
  change(after.allowed_failed_count, said.allowed_failed_count, int64_t{-1});
  change(after.allowed_failed_percent, said.allowed_failed_percent, 100.0);
  return after;
}

Result<ControlRequest> ParseControl(const std::string& body) {
  const std::optional<json> object = ParseObject(body);
  if (!object) {
    return Error{Code::kInvalid, "the body of control is not a JSON object"};
  }
  ControlRequest control;
  using Take = std::function<bool(const json&)>;
  const std::map<std::string, Take> keys{
      {"generation", [&](const json& v) { return Whole(v, 0, INT64_MAX, control.generation); }},
      {"drain", [&](const json& v) { return Flag(v, control.drain); }},
      {"cancel", [&](const json& v) { return Flag(v, control.cancel); }},
      {"podEnds", [&](const json& v) { return ParsePodEnds(v, control.pod_ends); }},
  };
  for (const auto& [key, value] : object->items()) {
    const auto found = keys.find(key);
    const Status field =
        found == keys.end() ? api::fields::CheckForRunningJob(key, value) : Status();
    if (!field.ok() && field.error().code == Code::kNotFound) {
      return Error{Code::kInvalid, "control has no key " + Printable(key, 50)};
    }
    if (!field.ok()) return Error{Code::kInvalid, "control: " + field.error().message};
    if (found == keys.end()) {
      control.spec[key] = value;
    } else if (!found->second(value)) {
      return Error{
          Code::kInvalid,
          fmt::format("control: {} may not be {}", key,
                      Printable(value.dump(-1, ' ', true, json::error_handler_t::replace), 100))};
    }
  }
  if (lenient::Integer(control.spec, "nodeCount") > kMostNodes) {
    return Error{Code::kInvalid, fmt::format("control: nodeCount may not be above {}", kMostNodes)};
  }
  return control;
}

}  // namespace parallelrun::coordinator
