// Kubernetes events that follow from a change of the status. They are emitted after the status was
// written, so that a plan which is made again tells nothing twice.
#include <spdlog/fmt/fmt.h>

#include "operator/plan/draft.h"

#include "base/count_of.h"

namespace parallelrun::operators {
namespace {

using reasons::Reason;
using reasons::Said;

// A node that fails in a job of a thousand is news; a thousand are not a thousand times more.
constexpr size_t kMostEvents = 10;

bool Became(const Draft& draft, const char* type) {
  return draft.status.Is(type) && !draft.before.Is(type);
}

void TellEnd(Draft& draft) {
  const auto tell = [&](const char* type, bool warning, std::optional<Reason> reason = {}) {
    if (!Became(draft, type)) return;
    const Condition& condition = *draft.status.Find(type);
    draft.Event(warning, Said{reason ? std::string(*reason) : condition.reason},
                condition.reason + (condition.message.empty() ? "" : ": " + condition.message));
  };
  const Condition* const complete = draft.status.Find("Complete");
  // Rows are missing, or a shutdown() did not end well: whoever reads only the phase must hear it.
  const bool not_well = complete != nullptr && complete->reason != kCompleted;
  tell("Complete", not_well);
  // The cause is a long text, and Failed tells it a moment later: once is enough.
  if (Became(draft, "FailureTarget")) {
    draft.Event(true, "Failing", draft.status.Find("FailureTarget")->reason + ": its pods end");
  }
  tell("Failed", true, Reason("Failed"));
  const Condition* const suspended = draft.status.Find("Suspended");
  const bool queued = suspended != nullptr && suspended->reason == "Queued";
  tell("Suspended", queued, queued ? Reason("Queued") : Reason("Suspended"));
}

void TellObstacle(Draft& draft) {
  const Condition* const ready = draft.status.Find("NodesReady");
  const Condition* const earlier = draft.before.Find("NodesReady");
  if (ready == nullptr || draft.obstacles.empty()) return;
  const Obstacle& worst = draft.obstacles.front();
  if (ready->reason != worst.reason.word()) return;
  const auto told = [&worst](const Condition& condition) {
    return condition.message.find(worst.event_words) != std::string::npos;
  };
  if (!told(*ready)) return;
  // What was a wait for somebody else and now wants a person is news, whatever it is called.
  const bool known = earlier != nullptr && earlier->reason == ready->reason && told(*earlier);
  if (known && !Became(draft, "Stalled")) return;
  draft.Event(worst.warning, worst.reason, ready->message);
}

}  // namespace

void TellChanges(Draft& draft) {
  const JobStatus& status = draft.status;
  const JobStatus& before = draft.before;
  if (draft.plan.events.size() > kMostEvents) draft.plan.events.resize(kMostEvents);
  const Condition* const accepted = status.Find("Accepted");
  const Condition* const earlier = before.Find("Accepted");
  if (accepted != nullptr && accepted->status == Truth::kFalse &&
      (earlier == nullptr || earlier->message != accepted->message)) {
    draft.Event(true, "Invalid", accepted->message);
  }
  if (status.start_time && !before.start_time) {
    draft.Event(false, "Started",
                fmt::format("{} of {}", CountOf(status.nodes.desired, "node"),
                            CountOf(status.effective.process_count_per_node, "process")));
  }
  // One whose last words end the job was started again by a kubelet that does not know them.
  const bool in_vain = draft.verdict && Became(draft, "FailureTarget");
  if (status.coordinator.restarts > before.coordinator.restarts && !in_vain) {
    draft.Event(
        true, "CoordinatorRestarted",
        fmt::format("the coordinator was restarted {} so far, {} of them since the last new "
                    "result",
                    CountOf(status.coordinator.restarts, "time"), status.coordinator.fruitless));
  }
  if (before.start_time && status.start_time && status.nodes.desired != before.nodes.desired) {
    draft.Event(
        false, "Scaled",
        fmt::format("from {} to {}", before.nodes.desired, CountOf(status.nodes.desired, "node")));
  }
  // The job's first coordinator continues what another job began.
  if (status.progress && !before.progress && draft.report && !draft.report->warning.empty()) {
    draft.Event(true, "ContinuedWithChanges", draft.report->warning);
  }
  if (status.warning != before.warning) draft.Event(true, "RunWarning", status.warning);
  TellObstacle(draft);
  TellEnd(draft);
}

}  // namespace parallelrun::operators
