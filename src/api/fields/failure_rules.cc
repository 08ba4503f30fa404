// What may fail, and how long it may take.
#include "api/fields/bind.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"

namespace parallelrun::api::fields {
namespace {

constexpr int64_t kThreeDays = 259200;  // the longest time-out of the contract, in seconds

}  // namespace

const FieldList& FailureRuleFields() {
  const auto timeout = [](const char* name, Duration JobSpec::*member, std::string text,
                          int64_t most = kThreeDays) {
    return Bound(name, member, Whole(1, most), std::move(text));
  };
  static const FieldList fields = {
      Bound("errorThreshold", &JobSpec::error_threshold, Whole(-1),
            "Items that may fail; -1, if not given, for any number. Items for which run() returned "
            "no element count only where this is 0 or more. May change while the job runs.")
          .SameAsNone("-1")
          .Changes(Change::kAnyTime)
          .In(kCoordinator | kWorker),
      Bound("allowedFailedCount", &JobSpec::allowed_failed_count, Whole(-1),
            "Mini-batches that may fail; -1, if not given, for any number. May change while the "
            "job runs.")
          .SameAsNone("-1")
          .Changes(Change::kAnyTime)
          .In(kCoordinator),
      Bound("allowedFailedPercent", &JobSpec::allowed_failed_percent, Number(0, 100),
            "Percent of all mini-batches that may fail; 100 if not given. May change while the job "
            "runs.")
          .SameAsNone("100")
          .Changes(Change::kAnyTime)
          .In(kCoordinator),
      Bound("shortReturn", &JobSpec::short_return, WordsOf<ShortReturn>(),
            "What to do when run() returns fewer elements than it got items: Keep takes what it "
            "returned; Fail fails the attempt, which is tried again.")
          .ServerFills()
          .ToldToWorkers("shortReturn")
          .In(kWorker),
      Bound("runMaxTry", &JobSpec::run_max_try, Whole(1),
            "Tries of a mini-batch before it has failed.")
          .ServerFills()
          .In(kCoordinator),
      Bound("isolateFailures", &JobSpec::isolate_failures, Boolean(),
            "true: a mini-batch that used its tries is split, until only single bad items fail.")
          .ServerFills()
          .In(kCoordinator),
      Bound("speculation", &JobSpec::speculation, Boolean(),
            "At the end of the job, idle processes try slow mini-batches a second time; true with "
            "AppendRow if not given.")
          .Otherwise("true with AppendRow")
          .In(kCoordinator),
      timeout("runInvocationTimeoutSeconds", &JobSpec::run_invocation_timeout,
              "Time-out of one run().")
          .ServerFills()
          .ToldToNodes("runTimeoutSeconds")
          .In(kWorker),
      timeout("taskOverheadTimeoutSeconds", &JobSpec::task_overhead_timeout,
              "Time-out of reading a mini-batch, of collecting its rows, and of beginning with "
              "what a process was given; 600 if not given.")
          .ToldToNodes("overheadTimeoutSeconds")
          .In(kWorker),
      // Its default may lie above three days.
      timeout("progressUpdateTimeoutSeconds", &JobSpec::progress_update_timeout,
              "The job fails when nothing is finished for so long. If not given: 3 x "
              "runInvocationTimeoutSeconds + 30, at least 300.",
              3 * kThreeDays + 30)
          .Otherwise("3 x runInvocationTimeoutSeconds + 30, at least 300")
          .In(kCoordinator),
      Bound("initTimeoutSeconds", &JobSpec::init_timeout, Whole(1, 3 * kThreeDays + 30),
            "Time-out of init(), with the import of the script: the job fails when it has run for "
            "so long and no process of any node has come through it. If not given: 1,800, or 3 x "
            "runInvocationTimeoutSeconds + 30 or progressUpdateTimeoutSeconds where one of these "
            "is longer.")
          .Otherwise("1,800, or 3 x runInvocationTimeoutSeconds + 30 or "
                     "progressUpdateTimeoutSeconds where one of these is longer")
          .In(kCoordinator),
      // Jobs in the wild give it six days.
      timeout(
          "firstTaskCreationTimeoutSeconds", &JobSpec::first_task_creation_timeout,
          "The job fails when no mini-batch is planned by then, or later when all that is planned "
          "is finished and the listing plans nothing more for so long; 600 if not given.",
          kMostWhole)
          .In(kCoordinator),
      timeout("shutdownTimeoutSeconds", &JobSpec::shutdown_timeout,
              "Time for shutdown() once all mini-batches are done; 300 if not given. What it had "
              "to write is missing when it raises or takes longer: the job then says "
              "ShutdownFailed. A drain, a preemption and the end of a pod may leave less.")
          .ToldToNodes("shutdownTimeoutSeconds")
          .In(kCoordinator | kWorker),
      Bound("nodeRestartLimit", &JobSpec::node_restart_limit, Whole(0),
            "Restarts of nodes that the job itself caused before it fails. If not given 3 x "
            "nodeCount, and 22 for each mini-batch that failed since it ended its nodes, and for "
            "one more. Preemption, eviction, drain, the loss of a machine, and a node that fails "
            "while others work do not count.")
          .Otherwise("3 x nodeCount, and 22 for each mini-batch that failed since it ended its "
                     "nodes, and for one more")
          .In(kCommand | kOperator),
  };
  return fields;
}

}  // namespace parallelrun::api::fields
