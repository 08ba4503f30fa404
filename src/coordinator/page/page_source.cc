#include "coordinator/page/page_source.h"

#include <utility>
#include <vector>

#include "coordinator/page/page_data.h"
#include "coordinator/progress.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kErrorsOnPage = 20;

}  // namespace

PageSource::PageSource(Of of) : of_(std::move(of)), figures_(of_.state) {
  of_.coordinator.Watch([this](const job::Record& record) { figures_.Observe(record); });
}

nlohmann::json PageSource::Now() {
  const job::JobState& state = of_.state;
  const Coordinator& coordinator = of_.coordinator;
  const WallTime now = of_.clock.WallNow();
  const bool over = coordinator.phase() == Coordinator::Phase::kEnded;
  if (!over) figures_.Reach(now.time_since_epoch().count());
  std::vector<ErrorShown> errors;
  for (job::DistinctError& error : state.errors().Top(kErrorsOnPage)) {
    const std::string item = of_.names.Shown(error.batch);
    errors.push_back({std::move(error), item, ""});
  }
  std::vector<SlowAttempt> slowest;
  for (const Figures::Attempt& attempt : figures_.figures().slowest()) {
    slowest.push_back({attempt, ""});
  }
  LiveFacts live{StateName(coordinator),
                 coordinator.WaitsFor(),
                 of_.store_waits(),
                 coordinator.InitText(of_.clock.Now()),
                 coordinator.running(),
                 TimeLeft(coordinator),
                 std::nullopt};
  if (const auto running = coordinator.Slowest(of_.clock.Now())) {
    const auto& [held, age] = *running;
    live.slowest = {held.id, held.lease.node, age, of_.names.Shown(held.id)};
  }
  return PageData({state, coordinator.rules(), figures_.figures(), figures_.map(),
                   std::move(errors), std::move(slowest),
                   of_.waits != nullptr ? std::optional(of_.waits->times()) : std::nullopt, now,
                   of_.log_folder, std::move(live)});
}

}  // namespace parallelrun::coordinator
