#include "coordinator/log_tree/metric_log.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"

namespace parallelrun::coordinator {

using nlohmann::json;

void MetricLog::Add(const std::vector<Told::Metric>& metrics) {
  if (metrics.empty()) return;
  std::string lines;
  for (const Told::Metric& metric : metrics) {
    std::optional<json> value = ParseObject(metric.json);
    if (!value || !lenient::At(*value, "name").is_string()) continue;
    (*value)["node"] = metric.node;
    (*value)["process"] = fmt::format("process{:03}", metric.process);
    const auto dump = [](const json& v) {
      return v.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    lines += dump(*value) + "\n";
    const std::string name = lenient::Text(*value, "name").substr(0, 100);
    if (value->contains("value") && (latest_.size() < kMaxNames || latest_.contains(name))) {
      latest_[name] = dump((*value)["value"]);
    }
  }
  writer_.Append("user/metrics.jsonl", std::move(lines));
}

}  // namespace parallelrun::coordinator
