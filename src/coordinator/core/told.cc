#include "coordinator/core/told.h"

#include <algorithm>
#include <charconv>

namespace parallelrun::coordinator {

void Told::AddMetric(uint32_t node, const job::ProcessEvent& event) {
  uint64_t number = 0;
  std::from_chars(event.log.data(), event.log.data() + event.log.size(), number);
  uint64_t& last = last_metric_[{node, event.process}];
  if (number <= last) return;
  last = number;
  metrics_.push_back({node, event.process, std::string(event.message)});
}

void Told::Refuse(uint32_t node, uint64_t pod, const job::Incarnation& incarnation,
                  std::vector<RefusedReport> reports) {
  std::stable_sort(reports.begin(), reports.end(),
                   [](const auto& a, const auto& b) { return a.name < b.name; });
  for (size_t i = 0; i < reports.size(); ++i) {
    const bool last = i + 1 == reports.size() || reports[i + 1].name != reports[i].name;
    if (last) refusals_.Note(node, pod, incarnation, reports[i]);
  }
}

void Told::RefuseAll(uint32_t node, const job::ExchangeRequest& request) {
  for (const job::Finished& done : request.finished) {
    if (done.kind == job::Finished::Kind::kReturned) continue;
    refusals_.Note(node, 0, request.incarnation,
                   {{done.id, done.fence}, KindOf(done), RefusalReason::kStale});
  }
}

}  // namespace parallelrun::coordinator
