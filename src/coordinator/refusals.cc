#include "coordinator/refusals.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace parallelrun::coordinator {
namespace {

const char* Words(RefusedReport::Kind kind) {
  switch (kind) {
    case RefusedReport::Kind::kLease: return "the lease";
    case RefusedReport::Kind::kOffer: return "the offer";
    case RefusedReport::Kind::kResult: return "a result";
    case RefusedReport::Kind::kFailedAttempt: return "a failed attempt";
  }
  return "a report";
}

const char* Words(RefusalReason why) {
  switch (why) {
    case RefusalReason::kStale: return "this incarnation is not in force";
    case RefusalReason::kJobOver: return "the job is over";
    case RefusalReason::kSettled: return "another attempt has settled it";
    case RefusalReason::kLeased: return "it is under another lease";
    case RefusalReason::kExpired: return "its lease is over";
    case RefusalReason::kUnknown: return "there is no such mini-batch";
    case RefusalReason::kContent: return "its content is not the plan's";
    case RefusalReason::kIncomplete: return "a part of its rows is missing";
  }
  return "";
}

}  // namespace

RefusedReport::Kind KindOf(const job::Finished& done) {
  return done.kind == job::Finished::Kind::kFailed ? RefusedReport::Kind::kFailedAttempt
                                                   : RefusedReport::Kind::kResult;
}

const char* RefusalName(RefusalReason why) {
  switch (why) {
    case RefusalReason::kStale: return "stale";
    case RefusalReason::kJobOver: return "job_over";
    case RefusalReason::kSettled: return "settled";
    case RefusalReason::kLeased: return "leased";
    case RefusalReason::kExpired: return "expired";
    case RefusalReason::kUnknown: return "unknown";
    case RefusalReason::kContent: return "content";
    case RefusalReason::kIncomplete: return "incomplete";
  }
  return "";
}

void Refusals::Note(uint32_t node, uint64_t pod, const job::Incarnation& incarnation,
                    const RefusedReport& report) {
  ++counts_[static_cast<size_t>(report.why)];
  Untold& untold = untold_[{node, report.why}];
  untold.pod = std::max(untold.pod, pod);
  if (++untold.count > kTold) return;
  untold.first += fmt::format("{}{} of mini-batch {} (fence {}.{}, incarnation {}.{})",
                              untold.count == 1 ? "" : ", ", Words(report.kind),
                              job::MiniBatchText(report.name.id), report.name.fence.epoch,
                              report.name.fence.number, incarnation.epoch, incarnation.number);
}

std::vector<Refusals::Line> Refusals::Take() {
  std::vector<Line> lines;
  for (const auto& [of, untold] : std::exchange(untold_, {})) {
    const auto& [node, why] = of;
    const bool ordinary = why == RefusalReason::kStale || why == RefusalReason::kJobOver ||
                          (speculation_ && why == RefusalReason::kSettled);
    std::string text = fmt::format("refused of node {}{}, as {}: {}", node,
                                   untold.pod == 0 ? "" : fmt::format(" (pod {})", untold.pod),
                                   Words(why), untold.first);
    if (untold.count > kTold) text += fmt::format(", and {} more", untold.count - kTold);
    lines.push_back({!ordinary, std::move(text)});
  }
  return lines;
}

}  // namespace parallelrun::coordinator
