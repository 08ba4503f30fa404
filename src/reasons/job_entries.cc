#include "reasons/sections.h"

namespace parallelrun::reasons {
namespace {

constexpr uint8_t kEnd = kVerdict | kCondition;  // with an event Failed
constexpr uint8_t kTold = kVerdict | kCondition | kEvent;

constexpr Entry kEndsOfAJob[] = {
    {"Complete", kVerdict, "The job succeeded with every item.", "Nothing."},
    {"Completed", kCondition | kEvent, "The job succeeded with every item.", "Nothing."},
    {"CompletedWithFailures", kTold,
     "The job succeeded, but some items were lost. That is within the thresholds of the job. Their "
     "rows are not in the output.",
     "`parallelrun failures OUT` names the items and their errors. Fix the cause, and run again "
     "with `--retry-failed`; on a cluster delete the job and apply it with `output.ifExists: "
     "RetryFailed`."},
    {"ShutdownFailed", kTold,
     "In a process that had given results `shutdown()` raised, took longer than "
     "`shutdownTimeoutSeconds`, or its process ended first. With `AppendRow` the job has "
     "succeeded, and every row is there. With `SummaryOnly` it has failed, because what the script "
     "was to write may be missing.",
     "Read the log that the message names and fix `shutdown()`. `--retry-failed`, on a cluster "
     "`output.ifExists: RetryFailed`, runs the mini-batches of that process again."},
    {"ErrorThresholdExceeded", kEnd, "More items have failed than `errorThreshold` allows.",
     "Fix the error that the message names, and run again with `--resume`, on a cluster with "
     "`output.ifExists: Resume`: what has succeeded is kept. Or raise `errorThreshold`."},
    {"AllowedFailedCountExceeded", kEnd,
     "More mini-batches have failed than `allowedFailedCount` allows.",
     "Fix the error that the message names, and run again with `--resume`, on a cluster with "
     "`output.ifExists: Resume`. Or raise `allowedFailedCount`."},
    {"AllowedFailedPercentExceeded", kEnd,
     "A larger part of the mini-batches has failed than `allowedFailedPercent` allows.",
     "Fix the error that the message names, and run again with `--resume`, on a cluster with "
     "`output.ifExists: Resume`. Or raise `allowedFailedPercent`."},
    {"NothingSucceeded", kEnd, "Every mini-batch has failed.",
     "Nearly always it is one error of the script or of its image: the message names the most "
     "frequent one. Fix it and run again. `parallelrun debug OUT` runs one mini-batch in your "
     "terminal."},
    {"NoRows", kEnd, "No `run()` returned a row, so there is no output to write.",
     "Return one element for each item. Set `output.action: SummaryOnly` if the script writes its "
     "results itself."},
    {"SideFilesUnusable", kEnd,
     "Two mini-batches have written a side file of the same name, or all of them together more "
     "than are taken. With `output.sideFiles: Staged` each file counts with the one mini-batch "
     "that wrote it, so none is appended to by another.",
     "Give each mini-batch file names of its own, as with `mini_batch_context.minibatch_index`, "
     "or return rows in place of lines that are appended. Then start over with `--overwrite`, on "
     "a cluster with `output.ifExists: Overwrite`. `sideFiles: Direct` allows it, without a "
     "promise."},
    {"ScriptUnusable", kEnd,
     "The entry script is missing, does not compile, or has no `run` that can be called. Or every "
     "process failed by an error of the script, such as a name that is not defined, before "
     "anything had succeeded.",
     "Fix the line that the message names and run again."},
    {"InitFailed", kEnd | kFailure,
     "Importing the script or its `init()` failed: it raised, or ended its process. As the reason "
     "of a job: so it did in every process.",
     "Fix the error that the message names, such as a model that is not there or a package that "
     "the image lacks. The whole traceback is in `user/error`."},
    {"InitTimeout", kEnd,
     "`init()` ran for `initTimeoutSeconds`, and no process of any node has come through it. The "
     "message says where the processes are in Python.",
     "Find out what `init()` waits for at that line, such as a download or a lock. If a model "
     "takes this long to load, raise `initTimeoutSeconds`."},
    {"InputUnusable", kEnd,
     "An input is missing, empty, cannot be listed, or holds a name that cannot be used.",
     "Look at the path that the message names, correct `inputs` or the data, and run again. Where "
     "no item is no mistake, write `allowEmpty` into that input."},
    {"NoProgress", kEnd,
     "No mini-batch was finished within `progressUpdateTimeoutSeconds`. The message says where the "
     "processes are in Python, which nodes have fallen silent or end again and again, or which "
     "store gives nothing.",
     "Find out what the script waits for at that line, or see to the store or the nodes. If a "
     "mini-batch may take this long, raise "
     "`progressUpdateTimeoutSeconds` or lower `miniBatchSize`. `--resume` keeps what is finished."},
    {"FirstTaskTimeout", kEnd,
     "The listing of the input planned nothing for `firstTaskCreationTimeoutSeconds`, and nothing "
     "else was left to do.",
     "Raise `firstTaskCreationTimeoutSeconds`, or look at why the storage lists so slowly."},
    {"LedgerUnreadable", kEnd, "The state folder cannot be read back.",
     "`parallelrun ledger STATE_FOLDER` says what is damaged. Look at the storage, then run again "
     "with `--overwrite`, on a cluster with `output.ifExists: Overwrite`."},
    {"Canceled", kEnd,
     "Somebody canceled the job: `spec.cancel` is true, or the coordinator was told.",
     "Nothing. A job with `output.ifExists: Resume` goes on where this one ended."},
    {"DeadlineExceeded", kEnd | kNodeEnd,
     "The job was active for longer than `activeDeadlineSeconds`. As the end of a pod: so was the "
     "pod, by `podTemplate`.",
     "Raise `activeDeadlineSeconds`, or give the job more nodes, delete it and apply it with "
     "`output.ifExists: Resume`."},
    {"StartupDeadlineExceeded", kCondition,
     "No node was ready within `startupDeadlineSeconds`. The message says what the nodes waited "
     "for.",
     "Look up that reason on this page."},
    {"NodeRestartLimitExceeded", kCondition,
     "Nodes have failed more often than `nodeRestartLimit` allows, while no other node worked.",
     "The message says how the last one ended. Fix that, delete the job and apply it with "
     "`output.ifExists: Resume`."},
    {"CoordinatorRestartLimitExceeded", kCondition,
     "The coordinator was restarted more often than `coordinator.restartLimit` allows, without a "
     "new result.",
     "The message has its last words. Fix that, delete the job and apply it with `output.ifExists: "
     "Resume`: every result is kept."},
    {"CoordinatorCannotStart", kCondition,
     "The coordinator cannot start, for example because an earlier output is there. The message "
     "says why.",
     "Do what the message says, delete the job and apply it again."},
    {"OutputNotPublished", kCondition,
     "Every mini-batch is done, and something that is not of this job is in the place of the "
     "output. Every result is kept.",
     "Move it away, delete the job and apply it with `output.ifExists: Resume`."},
    {"JobFailed", kCondition, "The coordinator said that the job failed, and gave no reason.",
     "Read the log of the coordinator: `sys/master_role.txt`, or `kubectl logs` of its pod."},
};

constexpr Entry kFailedAttempts[] = {
    {"Exception", kFailure, "`run()` raised an exception.",
     "The error names its type, message and line of the script. The whole traceback is in "
     "`user/error`. `parallelrun debug OUT --item NAME` runs the item in your terminal."},
    {"BadReturn", kFailure,
     "`run()` returned something that cannot become rows: not a list, tuple, array, Series or "
     "DataFrame, or a value in it that the format of the output does not know.",
     "Return one element for each item. The message names the row and the value."},
    {"BadSideFile", kFailure,
     "With `output.sideFiles: Staged`, `run()` left a side file that cannot count with its "
     "attempt: it is still open for writing, a link, of a name that the job itself uses, there are "
     "too many, or the store of the output refuses it.",
     "The message names the file. Close it in `run()`, as `with open(...)` does, and give each "
     "mini-batch files of its own."},
    {"ShortReturn", kFailure,
     "`run()` returned fewer elements than it got items. It is a failure with `shortReturn: Fail`, "
     "or where `errorThreshold` counts items.",
     "Return one element for each item, also for those without a result. Set `shortReturn: Keep` "
     "if fewer are right."},
    {"RunTimeout", kFailure,
     "`run()` took longer than `runInvocationTimeoutSeconds`, and its process was killed. The "
     "message says where it was.",
     "Raise `runInvocationTimeoutSeconds`, lower `miniBatchSize`, or give what the script waits "
     "for a time-out of its own."},
    {"OverheadTimeout", kFailure,
     "Reading the mini-batch, or turning what `run()` returned into rows, took longer than "
     "`taskOverheadTimeoutSeconds`. The process was killed.",
     "Look at the storage of the input. Raise `taskOverheadTimeoutSeconds` or lower "
     "`miniBatchSize`."},
    {"ProcessEnded", kFailure,
     "The process died in `run()`: by a signal, for want of memory, or because the script ended "
     "it.",
     "The message says how. For memory lower `miniBatchSize` or `processCountPerNode`, or give the "
     "node more. `user/stderr` has the last that the process wrote."},
    {"OOMKilled", kFailure | kNodeEnd,
     "The container of a node used more memory than it may, and was killed. As the failure of an "
     "attempt: while that mini-batch alone ran there.",
     "Raise `resources.limits.memory`, or lower `processCountPerNode` or `miniBatchSize`."},
    {"LostTooOften", kFailure, "Nodes died again and again while this mini-batch ran on them.",
     "Look in `sys/node` for what ends a whole node, such as memory. Fix it, and run again with "
     "`--retry-failed`, on a cluster with `output.ifExists: RetryFailed`."},
    {"InputChanged", kFailure,
     "A file is not what it was when it was listed, or what its manifest says, or is gone.",
     "Do not change the input of a job while it runs. Run again with `--overwrite`, on a cluster "
     "with `output.ifExists: Overwrite`: the input is listed again. A manifest with columns of "
     "sizes or ETags is made anew before that."},
    {"InputUnreadable", kFailure, "A file cannot be read or parsed.",
     "The message names it. Correct its rights, and run again with `--retry-failed`. A file that "
     "was itself corrected is run alone, with `--only` and another output; or leave it out with "
     "`inputs[].exclude`, and start over."},
    {"Misfit", kFailure,
     "A value does not fit the type of its column, or a file has other columns than the others. It "
     "is not tried again.",
     "The message names file, line, column and value, and what to write in `dtypes`. Run again "
     "with these `dtypes` and `--retry-failed`; or correct the file, and run it alone, with "
     "`--only` and another output."},
    {"SkippedRows", kFailure,
     "`badRows: Skip` left out rows that do not fit the columns. The mini-batch succeeded without "
     "them.",
     "The log that the entry names lists them. Correct them, or raise `errorThreshold`."},
    {"NoSpace", kFailure,
     "`run()` or `init()` raised because a disk or a quota is full. The mini-batch runs again, and "
     "that is no failed attempt.",
     "Make room where the script writes. The node goes on by itself."},
    {"ScriptMissing", kFailure, "The entry script is not in the code folder.",
     "Set `entryScript` to a path inside the code folder, or to a dotted module name."},
    {"ScriptInvalid", kFailure,
     "The entry script does not compile, has no `run()`, or a function of it asks for more than it "
     "is given.",
     "Fix the line that the message names and run again."},
    {"PythonTooOld", kFailure, "The interpreter is older than Python 3.8.",
     "Use an image that has a newer one, or name another interpreter in `environment.python`."},
};

}  // namespace

std::span<const Entry> EndsOfAJob() { return kEndsOfAJob; }
std::span<const Entry> FailedAttempts() { return kFailedAttempts; }

}  // namespace parallelrun::reasons
