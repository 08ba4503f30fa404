#include "coordinator/store_waits.h"

namespace parallelrun::coordinator {

StoreWaits::StoreWaits(const std::map<std::string, store::Wished>& stores) {
  for (const auto& [name, wished] : stores) {
    if (wished.tally) tallies_.emplace_back(wished.url, wished.tally);
  }
}

void StoreWaits::Observe(WallTime now) {
  // Two stores of a job may be one bucket, with other keys.
  std::map<std::string, store::AnswerCounts> by_url;
  for (const auto& [url, tally] : tallies_) {
    const store::AnswerCounts counts = tally->Counts();
    by_url[url].all += counts.all;
    by_url[url].throttled += counts.throttled;
  }
  for (const auto& [url, counts] : by_url) throttling_.Saw(url, counts, now);
  own_ = throttling_.Text(now);
}

std::string StoreWaits::With(const std::string& nodes) const {
  if (own_.empty()) return nodes;
  const std::string coordinator = "the coordinator: " + own_;
  return nodes.empty() ? coordinator : coordinator + "; " + nodes;
}

}  // namespace parallelrun::coordinator
