// The parts of the status that only show, and when it is worth a write.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>

#include "api/devices.h"
#include "api/output_address.h"
#include "base/count_of.h"
#include "operator/plan/draft.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using reasons::Reason;

constexpr Duration kBetweenProgress = seconds(10);
constexpr Duration kBetweenCounts = seconds(2);
// Of what a coordinator said longer ago nobody knows whether it goes on. It is asked every 5 s.
constexpr Duration kEstimateLasts = seconds(10);

// Until a node has pulled it, the image is known by the name that the job gives it. A node of a
// short job may end before it is seen at work.
void ShowImage(Draft& draft) {
  constexpr char kDigest[] = "@sha256:";
  std::string& image = draft.status.effective.image;
  if (image.empty()) image = draft.spec.environment.image;
  if (image.find(kDigest) != std::string::npos) return;
  for (const PodDigest& pod : draft.seen.pods) {
    if (pod.role != PodRole::kNode || pod.main.image_id.find(kDigest) == std::string::npos)
      continue;
    image = pod.main.image_id;
    return;
  }
}

void ShowPods(Draft& draft) {
  JobStatus& status = draft.status;
  status.nodes.desired = draft.spec.node_count;
  status.nodes.ready = 0;
  status.replicas = 0;
  for (const auto& [index, group] : draft.groups.nodes) {
    const PodDigest* const pod = group.Live();
    if (pod == nullptr) continue;
    ++status.replicas;
    if (pod->ready && index < draft.spec.node_count) ++status.nodes.ready;
  }
  ShowImage(draft);
  if (status.nodes.ready > 0 && !status.ready_time && status.start_time) {
    status.ready_time = draft.now;
  }
  status.selector = NodeSelector(draft.identity);
  status.logs = Shortened(api::LogPlace(draft.spec), kMaxMessage);
  status.url =
      fmt::format("https://{}:{}/", CoordinatorHost(draft.identity), draft.CoordinatorPort());
}

// Adds what the nodes used since the last write.
void ShowUsage(Draft& draft) {
  UsageStatus& usage = draft.status.usage;
  const WallTime from = usage.until;
  usage.until = draft.now;
  if (from == WallTime{}) return;
  Duration used{};
  for (const PodDigest& pod : draft.seen.pods) {
    if (pod.role != PodRole::kNode || (!pod.main.running && !pod.main.ended)) continue;
    const WallTime end = pod.main.running ? draft.now : pod.main.ended->finished;
    used += std::max<Duration>(Duration::zero(), end - std::max(from, pod.created));
  }
  const int64_t whole = std::chrono::duration_cast<seconds>(used).count();
  usage.node_seconds += whole;
  usage.gpu_seconds += whole * api::DevicesOf(draft.spec).count;
}

// Of the node that ended last for a reason of the job: why its init() failed is no mini-batch's
// error.
std::optional<DistinctFailure> LastNodeFailure(const Draft& draft) {
  std::optional<PodOutcome> last;
  DistinctFailure failure;
  for (const auto& [index, group] : draft.groups.nodes) {
    const PodDigest* const pod = group.Tombstone();
    if (pod == nullptr) continue;
    PodOutcome end = EndOf(*pod);
    if (end.cause != EndCause::kJob || (last && end.at <= last->at)) continue;
    failure.kind = end.reason;
    failure.message = Shortened(end.message, kMaxMessage);
    failure.node = index;
    last = std::move(end);
  }
  if (!last) return std::nullopt;
  failure.count = std::max<int64_t>(1, draft.status.nodes.restarts);
  return failure;
}

void ShowFailure(Draft& draft) {
  constexpr size_t kMostErrors = 5;
  JobStatus& status = draft.status;
  const Condition* const target = status.Find("FailureTarget");
  const bool failed = target != nullptr && target->status == Truth::kTrue;
  std::vector<DistinctFailure> errors;
  if (draft.report) errors = draft.report->errors;
  if (errors.size() < kMostErrors) {
    if (auto node = LastNodeFailure(draft)) errors.push_back(std::move(*node));
  }
  if (!failed && errors.empty() && !status.failure) return;
  FailureStatus failure = status.failure.value_or(FailureStatus{});
  failure.reason = failed ? target->reason : "";
  failure.message = failed ? target->message : "";
  if (!errors.empty()) failure.errors = std::move(errors);
  status.failure = failure;
}

// Nobody knows what the job does: the operator reads it from its coordinator.
bool CoordinatorSilent(const Draft& draft) {
  return std::any_of(draft.obstacles.begin(), draft.obstacles.end(),
                     [](const Obstacle& one) { return one.reason == "CoordinatorSilent"; });
}

// When the job will be done is known only while it goes on, and a coordinator says so.
bool GoesOn(const Draft& draft) {
  const JobStatus& status = draft.status;
  const CoordinatorView& view = draft.seen.coordinator;
  const PodDigest* const live = draft.groups.coordinator.Live();
  if (CoordinatorSilent(draft)) return false;
  return !status.Over() && !status.Is("FailureTarget") && !draft.suspend && live != nullptr &&
         view.report && view.pod_uid == live->uid && view.pulled + kEstimateLasts >= draft.now;
}

void ShowReport(Draft& draft) {
  JobStatus& status = draft.status;
  // Of a job that is over, an operator that was late knows less than the status says.
  if (draft.report && (!draft.before.Over() || draft.report->Ended())) {
    const Report& report = *draft.report;
    ProgressStatus progress;
    progress.total = report.total;
    progress.succeeded = report.succeeded;
    progress.failed = report.failed;
    progress.running = report.running;
    progress.items_total = report.items_total;
    progress.items_succeeded = report.items_succeeded;
    progress.items_failed = report.items_failed;
    progress.listing_done = report.listing_done;
    progress.per_second = std::llround(std::clamp(report.per_second, 0.0, 1e15));
    const int64_t total = report.total.value_or(0);
    if (total > 0) {
      progress.percent =
          static_cast<int32_t>(100.0 * static_cast<double>(std::min(report.Settled(), total)) /
                               static_cast<double>(total));
    }
    if (report.seconds_remaining) {
      progress.estimated_completion =
          draft.now + seconds(std::clamp<int64_t>(*report.seconds_remaining, 0, 1'000'000'000));
    }
    progress.updated = draft.now;
    status.progress = progress;
    if (report.output) status.output = report.output;
    if (!report.late_warning.empty()) status.warning = report.late_warning;
  }
}

std::string PhaseOf(const Draft& draft) {
  const JobStatus& status = draft.status;
  if (status.Is("Complete")) return "Succeeded";
  if (status.Is("Failed")) return "Failed";
  if (status.Is("FailureTarget") || draft.finalizing) return "Finalizing";
  if (draft.suspend) return "Suspended";
  if (!status.start_time) return "Pending";
  const bool works = draft.report && (draft.report->state == "Running" ||
                                      draft.report->Settled() + draft.report->running > 0);
  if (works || draft.before.phase == "Running") return "Running";
  return "Starting";
}

void ShowNodesReady(Draft& draft) {
  const JobStatus& status = draft.status;
  const Obstacle* const worst = draft.obstacles.empty() ? nullptr : &draft.obstacles.front();
  const PodDigest* const coordinator = draft.groups.coordinator.Live();
  const int32_t needed = status.nodes.desired - draft.unneeded;
  const bool all = coordinator != nullptr && status.nodes.ready >= needed;
  std::string counts = fmt::format("{} of {} ready", status.nodes.ready,
                                   CountOf(status.nodes.desired, "node", "is", "are"));
  if (draft.report) {
    const Report& report = *draft.report;
    for (const std::string& waits : {report.fetching, report.init, report.store_waits}) {
      if (!waits.empty()) counts += "; " + waits;
    }
  }
  if (draft.unneeded > 0) {
    counts += fmt::format("; {} not made: all that is left is running, and the others have room",
                          CountOf(draft.unneeded, "node", "is", "are"));
  }
  const bool made = coordinator != nullptr && status.replicas >= needed;
  if (worst != nullptr && (!all || worst->rank >= 20)) {
    std::string message = worst->message;
    if (draft.obstacles.size() > 1) {
      message += fmt::format(" (and {} more)", draft.obstacles.size() - 1);
    }
    draft.Set("NodesReady", all ? Truth::kTrue : Truth::kFalse, worst->reason, message);
  } else if (all) {
    draft.Set("NodesReady", Truth::kTrue, "AllReady", counts);
  } else {
    draft.Set("NodesReady", Truth::kFalse, made ? Reason("Starting") : Reason("CreatingPods"),
              counts);
  }
  draft.Set("Reconciling", made ? Truth::kFalse : Truth::kTrue,
            made ? Reason("PodsCreated") : Reason("CreatingPods"),
            made ? "" : "the job's pods are not all created");
  const bool stalled = worst != nullptr && worst->stalled;
  draft.Set("Stalled", stalled ? Truth::kTrue : Truth::kFalse,
            stalled ? worst->reason : Reason("NotStalled"), stalled ? worst->message : "");
}

// What the whole job waits for; "" if it is at work, whatever some of its nodes wait for.
std::string WaitsFor(const Draft& draft) {
  if (draft.obstacles.empty()) return "";
  const Obstacle& worst = draft.obstacles.front();
  if (draft.status.Find("NodesReady")->reason != worst.reason.word()) return "";
  const PodDigest* const coordinator = draft.groups.coordinator.Live();
  const bool paused = draft.report && !draft.report->paused.empty();
  const bool at_work = draft.status.phase == "Running" && draft.status.nodes.ready > 0 &&
                       coordinator != nullptr && coordinator->ready && !paused &&
                       !CoordinatorSilent(draft);
  return at_work && !worst.stalled ? "" : std::string(worst.reason);
}

void ShowDisplay(Draft& draft) {
  JobStatus& status = draft.status;
  DisplayStatus& display = status.display;
  display.status = WaitsFor(draft);
  if (display.status.empty()) display.status = status.phase;
  if (!draft.seen.job.parsed.ok() && !status.Over()) display.status = "Invalid";
  display.nodes = fmt::format("{}/{}", status.nodes.ready, status.nodes.desired);
  display.eta = "";
  if (!status.progress) return;
  const ProgressStatus& progress = *status.progress;
  const int64_t settled = progress.succeeded + progress.failed;
  display.done = progress.total
                     ? fmt::format("{}% ({}/{})", progress.percent, settled, *progress.total)
                     : fmt::format("{}", settled);
  display.failed = std::to_string(progress.items_failed);
  if (progress.estimated_completion) {
    display.eta =
        HumanDuration(std::max(Duration::zero(), *progress.estimated_completion - draft.now));
  }
}

// What is in force: while a coordinator works, what it has heard of.
void ShowGeneration(Draft& draft) {
  const int64_t generation = draft.seen.job.generation;
  int64_t& observed = draft.status.observed_generation;
  const CoordinatorView& view = draft.seen.coordinator;
  const PodDigest* const live = draft.groups.coordinator.Live();
  const bool ask = live != nullptr && live->main.running && observed != 0 && !draft.status.Over() &&
                   draft.seen.job.parsed.ok() && !draft.suspend;
  const bool told = live != nullptr && view.pod_uid == live->uid && view.acknowledged &&
                    view.acknowledged->value("generation", int64_t{0}) >= generation;
  const bool echoed = view.report && view.report->control_generation >= generation;
  if (!ask || told || echoed) observed = generation;
}

// `status` with the figures of `before` that are written only now and then.
JobStatus WithoutProgress(const JobStatus& status, const JobStatus& before) {
  JobStatus out = status;
  out.progress = before.progress;
  out.usage = before.usage;
  out.display.done = before.display.done;
  out.display.failed = before.display.failed;
  out.display.eta = before.display.eta;
  out.coordinator.settled = before.coordinator.settled;
  if (out.failure && before.failure) out.failure->errors = before.failure->errors;
  return out;
}

// `status` with the counts and words of `before` that change with each pod of many.
JobStatus WithoutCounts(JobStatus status, const JobStatus& before) {
  status.nodes.ready = before.nodes.ready;
  status.replicas = before.replicas;
  status.display.nodes = before.display.nodes;
  for (Condition& condition : status.conditions) {
    const Condition* const earlier = before.Find(condition.type);
    const bool same = earlier != nullptr && earlier->status == condition.status &&
                      earlier->reason == condition.reason;
    if (same) condition.message = earlier->message;
  }
  return status;
}

bool WorthTelling(const JobStatus& status, const JobStatus& before) {
  if (!status.progress) return false;
  if (!before.progress) return true;
  const ProgressStatus& now = *status.progress;
  const ProgressStatus& then = *before.progress;
  if (now.percent != then.percent || now.listing_done != then.listing_done) return true;
  if (now.total) return false;
  const int64_t settled_now = now.succeeded + now.failed;
  const int64_t settled_then = then.succeeded + then.failed;
  return settled_now > settled_then && settled_now * 100 >= settled_then * 101;
}

}  // namespace

void ShowStatus(Draft& draft) {
  JobStatus& status = draft.status;
  const bool readable = draft.seen.job.parsed.ok();
  if (readable) {
    ShowPods(draft);
    ShowUsage(draft);
    ShowReport(draft);
    ShowFailure(draft);
    status.phase = PhaseOf(draft);
    if (!status.Over() && !status.Is("FailureTarget") && !draft.suspend) ShowNodesReady(draft);
  } else if (status.phase.empty()) {
    status.phase = "Pending";
  }
  if (status.progress && !(readable && GoesOn(draft))) {
    status.progress->estimated_completion.reset();
  }
  ShowDisplay(draft);
  ShowGeneration(draft);
}

void DecideWrite(Draft& draft) {
  Plan& plan = draft.plan;
  plan.goes_on = !plan.actions.empty() && plan.wake && *plan.wake <= draft.now;
  const bool failed = !draft.seen.failures.empty() || !draft.seen.passing.empty();
  if (plan.goes_on && draft.FirstVisit() && !failed) {
    plan.events.clear();  // one write after the pods does for both plans
    return;
  }
  const JobStatus telling = WithoutProgress(draft.status, draft.before);
  if (telling != draft.before) {
    const WallTime next = draft.before.usage.until + kBetweenCounts;
    if (draft.now < next && WithoutCounts(telling, draft.before) == draft.before) {
      return draft.Wake(next);
    }
    draft.plan.write_status = true;
    return;
  }
  if (!WorthTelling(draft.status, draft.before)) return;
  const WallTime next =
      (draft.before.progress ? draft.before.progress->updated : WallTime{}) + kBetweenProgress;
  if (draft.now >= next) {
    draft.plan.write_status = true;
  } else {
    draft.Wake(next);
  }
}

}  // namespace parallelrun::operators
