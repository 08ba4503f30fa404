#include "job/losses.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace parallelrun {
namespace {

using nlohmann::json;

// The member of an object; null where there is none, or no object.
json Member(const json& object, const char* key) {
  return object.is_object() ? object.value(key, json()) : json();
}

std::optional<int64_t> Count(const json& spec, const char* key) {
  const json value = Member(spec, key);
  return value.is_number_integer() ? std::optional(value.get<int64_t>()) : std::nullopt;
}

std::optional<double> Percent(const json& spec, const char* key) {
  const json value = Member(spec, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

}  // namespace

bool FailureRules::MissingItemsFail() const {
  // A script that writes its own results returns what it likes.
  return append_row && (short_return_fails || thresholds.error_threshold.value_or(-1) >= 0);
}

uint32_t FailureRules::FailedOf(uint32_t missing, uint32_t skipped) const {
  return MissingItemsFail() ? missing + skipped : skipped;
}

Losses CountLosses(const JobCounts& counts, const FailureRules& rules) {
  Losses losses;
  losses.isolated = counts.items_isolated;
  losses.skipped = counts.items_skipped;
  (rules.MissingItemsFail() ? losses.missing : losses.reported) = counts.items_missing;
  losses.items = counts.items_failed + losses.missing;
  const Thresholds& written = rules.thresholds;
  // Thresholds of mini-batches say nothing of items that were lost out of those that succeeded.
  const bool whole = losses.missing + losses.isolated + losses.skipped == 0;
  losses.allowed = losses.items == 0 || written.error_threshold ||
                   (whole && (written.allowed_failed_count || written.allowed_failed_percent));
  return losses;
}

std::string ItemsText(const JobCounts& counts, const Losses& losses) {
  std::string text = fmt::format("{} succeeded, {} failed", counts.items_succeeded, losses.items);
  if (losses.reported > 0) text += fmt::format(", {} without an element", losses.reported);
  return text;
}

FailureRules RulesOf(const std::string& job) {
  const json spec = Member(json::parse(job, nullptr, false), "spec");
  FailureRules rules;
  rules.thresholds = {Count(spec, "errorThreshold"), Count(spec, "allowedFailedCount"),
                      Percent(spec, "allowedFailedPercent")};
  rules.append_row = Member(Member(spec, "output"), "action") != "SummaryOnly";
  rules.short_return_fails = Member(spec, "shortReturn") == "Fail";
  return rules;
}

std::string WithThresholds(const std::string& job, const Thresholds& thresholds) {
  json changed = json::parse(job, nullptr, false);
  if (!changed.is_object()) changed = json::object();
  json& spec = changed["spec"];
  const auto write = [&spec](const char* key, const auto& threshold) {
    if (threshold) spec[key] = *threshold;
  };
  write("errorThreshold", thresholds.error_threshold);
  write("allowedFailedCount", thresholds.allowed_failed_count);
  write("allowedFailedPercent", thresholds.allowed_failed_percent);
  return changed.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace parallelrun
