// Told is what people hear of a running job besides its state: numbers that scripts log, what nodes
// report and is not taken, and how fast it goes. Nothing is decided by it. Bounded by what an
// exchange carries, and taken after each event. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "coordinator/refusals.h"
#include "job/ids.h"
#include "job/node_messages.h"
#include "job/rate.h"

namespace parallelrun::coordinator {

class Told {
 public:
  // `speculation`: of two attempts of a mini-batch one is refused in the order of things.
  explicit Told(bool speculation) : refusals_(speculation) {}

  // --- what scripts log with run.log
  struct Metric {
    uint32_t node = 0;
    uint32_t process = 0;
    std::string json;
  };
  // Told at least once; its number within its process makes a repeat known.
  void AddMetric(uint32_t node, const job::ProcessEvent& event);
  // Those since the last call.
  std::vector<Metric> TakeMetrics() { return std::exchange(metrics_, {}); }

  // --- what is not taken
  // Of one exchange. What is finished is among the held too: it counts once, as what came of it.
  void Refuse(uint32_t node, uint64_t pod, const job::Incarnation& incarnation,
              std::vector<RefusedReport> reports);
  // What came with an incarnation that is not in force.
  void RefuseAll(uint32_t node, const job::ExchangeRequest& request);
  const Refusals& refusals() const { return refusals_; }
  std::vector<Refusals::Line> TakeRefusals() { return refusals_.Take(); }

  // --- how fast it goes
  void Observe(const job::Rate::Seen& seen, WorkInstant worked) { rate_.Observe(seen, worked); }
  const job::Rate& rate() const { return rate_; }

 private:
  std::vector<Metric> metrics_;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> last_metric_;  // number, by node and process
  Refusals refusals_;
  job::Rate rate_;
};

}  // namespace parallelrun::coordinator
