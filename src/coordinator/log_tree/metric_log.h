// What scripts log with run.log: a line each in user/metrics.jsonl of the log tree, and the last
// value of each name for the progress. Not durable: a crash may lose the last lines. Not
// thread-safe.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "coordinator/core/told.h"
#include "coordinator/log_tree/log_writer.h"

namespace parallelrun::coordinator {

class MetricLog {
 public:
  static constexpr size_t kMaxNames = 100;  // kept for the progress; all go to the file

  explicit MetricLog(LogWriter& writer) : writer_(writer) {}

  // What is not a JSON object with a `name` is dropped: it came from user code.
  void Add(const std::vector<Told::Metric>& metrics);

  // Name to last value, as JSON text of an object.
  const std::map<std::string, std::string>& latest() const { return latest_; }

 private:
  LogWriter& writer_;
  std::map<std::string, std::string> latest_;  // values as JSON text
};

}  // namespace parallelrun::coordinator
