#include "coordinator/log_tree/metric_log.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace parallelrun {

using nlohmann::json;

void MetricLog::Add(const std::vector<Coordinator::Metric>& metrics) {
  if (metrics.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(folder_ + "/user", ignored);
  std::ofstream out(folder_ + "/user/metrics.jsonl", std::ios::app);
  for (const Coordinator::Metric& metric : metrics) {
    json value = json::parse(metric.json, nullptr, false);
    if (!value.is_object() || !value.contains("name") || !value["name"].is_string()) continue;
    value["node"] = metric.node;
    value["process"] = fmt::format("process{:03}", metric.process);
    const auto dump = [](const json& v) {
      return v.dump(-1, ' ', false, json::error_handler_t::replace);
    };
    out << dump(value) << '\n';
    const std::string name = value["name"].get<std::string>().substr(0, 100);
    if (value.contains("value") && (latest_.size() < kMaxNames || latest_.contains(name))) {
      latest_[name] = dump(value["value"]);
    }
  }
}

}  // namespace parallelrun
