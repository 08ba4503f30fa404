#include "job/losses.h"
#include "base/json.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace parallelrun::job {
namespace {

using nlohmann::json;

std::optional<double> Percent(const json& spec, const char* key) {
  const json& value = lenient::At(spec, key);
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

Thresholds ThresholdsOf(const json& spec) {
  return {lenient::MaybeInteger(spec, "errorThreshold"),
          lenient::MaybeInteger(spec, "allowedFailedCount"), Percent(spec, "allowedFailedPercent")};
}

FailureRules RulesOf(const std::string& job) {
  const json written = ParseJson(job).value_or(nullptr);
  const json& spec = lenient::At(written, "spec");
  FailureRules rules;
  rules.thresholds = ThresholdsOf(spec);
  for (const json& input : lenient::List(spec, "inputs")) {
    const std::string allowed = lenient::Text(input, "allowEmpty");
    if (allowed.empty() || allowed == "Never") continue;
    if (!rules.may_be_empty.empty()) rules.may_be_empty += ", ";
    rules.may_be_empty += fmt::format("inputs[{}]", lenient::Text(input, "name"));
  }
  rules.append_row = lenient::At(lenient::At(spec, "output"), "action") != "SummaryOnly";
  rules.short_return_fails = lenient::At(spec, "shortReturn") == "Fail";
  return rules;
}

std::string WithThresholds(const std::string& job, const Thresholds& thresholds) {
  json changed = ParseObject(job).value_or(json::object());
  json& spec = changed["spec"];
  const auto write = [&spec](const char* key, const auto& threshold) {
    if (threshold) spec[key] = *threshold;
  };
  write("errorThreshold", thresholds.error_threshold);
  write("allowedFailedCount", thresholds.allowed_failed_count);
  write("allowedFailedPercent", thresholds.allowed_failed_percent);
  return changed.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace parallelrun::job
