#include "coordinator/control.h"

#include <spdlog/fmt/fmt.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/escape.h"

namespace parallelrun {
namespace {

using nlohmann::json;

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

bool Percent(const json& value, std::optional<double>& out) {
  if (!value.is_number()) return false;
  const double percent = value.get<double>();
  if (!(percent >= 0 && percent <= 100)) return false;
  out = percent;
  return true;
}

bool ParsePodEnd(const json& value, PodEnd& end) {
  if (!value.is_object() || !value.contains("node") || !value.contains("incarnation") ||
      !value.contains("reason") || !value["reason"].is_string()) {
    return false;
  }
  end.reason = value["reason"].get<std::string>().substr(0, kMaxReason);
  return Whole(value["node"], 0, 999'999, end.node) &&
         Whole(value["incarnation"], 1, INT64_MAX, end.incarnation) &&
         (!value.contains("exitCode") ||
          Whole(value["exitCode"], INT32_MIN, INT32_MAX, end.exit_code));
}

bool ParsePodEnds(const json& value, std::vector<PodEnd>& ends) {
  if (!value.is_array() || value.size() > kMaxPodEnds) return false;
  for (const json& one : value) {
    if (!ParsePodEnd(one, ends.emplace_back())) return false;
  }
  return true;
}

}  // namespace

Thresholds ControlRequest::ChangedFrom(const Thresholds& before) const {
  Thresholds after = before;
  const auto change = [](auto& threshold, const auto& said, auto otherwise) {
    if (said && *said != threshold.value_or(otherwise)) threshold = said;
  };
  change(after.error_threshold, error_threshold, int64_t{-1});
  change(after.allowed_failed_count, allowed_failed_count, int64_t{-1});
  change(after.allowed_failed_percent, allowed_failed_percent, 100.0);
  return after;
}

Result<ControlRequest> ParseControl(const std::string& body) {
  const json object = json::parse(body, nullptr, false);
  if (!object.is_object()) {
    return Error{Code::kInvalid, "the body of control is not a JSON object"};
  }
  ControlRequest control;
  using Take = std::function<bool(const json&)>;
  const std::map<std::string, Take> keys{
      {"generation", [&](const json& v) { return Whole(v, 0, INT64_MAX, control.generation); }},
      {"nodeCount", [&](const json& v) { return Whole(v, 0, 1'000'000, control.nodes); }},
      {"errorThreshold",
       [&](const json& v) { return Whole(v, -1, INT32_MAX, control.error_threshold); }},
      {"allowedFailedCount",
       [&](const json& v) { return Whole(v, -1, INT32_MAX, control.allowed_failed_count); }},
      {"allowedFailedPercent",
       [&](const json& v) { return Percent(v, control.allowed_failed_percent); }},
      {"drain", [&](const json& v) { return Flag(v, control.drain); }},
      {"cancel", [&](const json& v) { return Flag(v, control.cancel); }},
      {"podEnds", [&](const json& v) { return ParsePodEnds(v, control.pod_ends); }},
  };
  for (const auto& [key, value] : object.items()) {
    const auto found = keys.find(key);
    if (found == keys.end()) {
      return Error{Code::kInvalid, "control has no key " + Printable(key, 50)};
    }
    if (!found->second(value)) {
      return Error{
          Code::kInvalid,
          fmt::format("control: {} may not be {}", key,
                      Printable(value.dump(-1, ' ', true, json::error_handler_t::replace), 100))};
    }
  }
  return control;
}

}  // namespace parallelrun
