#include "coordinator/start/earlier_run.h"

#include <spdlog/fmt/fmt.h>

#include <vector>

#include "api/settings.h"
#include "base/mutation.h"

namespace parallelrun {
namespace {

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

// How a user asks for it: a pod has no command line.
std::string AskFor(const NewRun& run, IfExists wanted) {
  const bool resume = wanted == IfExists::kResume;
  if (run.in_pod) return resume ? "output.ifExists: Resume" : "output.ifExists: Overwrite";
  return resume ? "--resume" : "--overwrite";
}

bool Finished(const JobState& state) {
  return state.published() || (state.verdict() && state.verdict()->outcome == Outcome::kSucceeded);
}

// There is nothing to keep, and nobody who may still be at work on it: a state folder is locked by
// the command that works on it, and a job on a cluster says when it is over.
bool NothingToKeep(const NewRun& run, const JobState& state) {
  const JobCounts& counts = state.counts();
  const bool over = state.verdict() || !run.in_pod;
  return over && counts.succeeded + counts.split == 0 && !run.output_there;
}

std::vector<std::string> ChangesOfRun(const NewRun& run, const Settings& before) {
  std::vector<std::string> changes;
  if (before.code_digest != run.code_digest) changes.emplace_back("the code");
  const Result<std::vector<std::string>> others =
      Differences(ScriptSettings(before.job), ScriptSettings(run.job));
  if (others.ok()) changes.insert(changes.end(), others->begin(), others->end());
  return changes;
}

Result<StartDecision> DecideFresh(const NewRun& run) {
  StartDecision decision;
  decision.write_settings = true;
  if (!run.output_there || run.if_exists == IfExists::kOverwrite) return decision;
  return Error{Code::kExists, run.output_path +
                                  " exists, and is not of a run that could be continued: move it "
                                  "away, choose another output, or replace it with " +
                                  AskFor(run, IfExists::kOverwrite)};
}

Error Refused(const NewRun& run, const JobState& state) {
  const std::string overwriting = AskFor(run, IfExists::kOverwrite);
  if (!Finished(state)) {
    return {Code::kExists,
            fmt::format("an unfinished run of this job is in {}: continue it with {}, or start "
                        "over with {}",
                        run.state_folder, AskFor(run, IfExists::kResume), overwriting)};
  }
  return {Code::kExists,
          fmt::format("{} exists: this job has finished already; start over with {}, or choose "
                      "another output",
                      run.output_path.empty() ? run.output_folder : run.output_path, overwriting)};
}

}  // namespace

Result<StartDecision> DecideStart(const NewRun& run, const JobState& state) {
  if (!state.settings()) return DecideFresh(run);
  StartDecision decision;
  const Settings& before = *state.settings();
  // The same job, whose coordinator was restarted: what a person asked for was done by then.
  if (before.resource_uid == run.resource_uid && !PARALLELRUN_MUTATED(kOverwriteOnRestart)) {
    return decision;
  }
  decision.write_settings = true;
  if (run.if_exists == IfExists::kOverwrite) {
    decision.overwrite = true;
    return decision;
  }
  const bool nothing = NothingToKeep(run, state);
  if (run.if_exists == IfExists::kFail) {
    if (!nothing) return Refused(run, state);
    decision.overwrite = true;
    return decision;
  }
  const Result<std::vector<std::string>> changes =
      Differences(before.plan_settings, run.plan_settings);
  if (!changes.ok()) return changes.error();
  if (!changes->empty()) {
    decision.overwrite = nothing;
    if (nothing) return decision;
    return Error{Code::kInvalid,
                 "the run cannot be continued, since its mini-batches would not be the same:" +
                     Lines(*changes) + "\nundo the change, or start over with " +
                     AskFor(run, IfExists::kOverwrite)};
  }
  const JobCounts& counts = state.counts();
  const bool retry =
      run.if_exists == IfExists::kRetryFailed && counts.failed + counts.items_isolated > 0;
  // A finished run stays finished, unless what failed is to be tried again.
  decision.write_settings = !Finished(state) || retry;
  if (decision.write_settings) decision.taken = ChangesOfRun(run, before);
  decision.generation = before.generation + 1;
  return decision;
}

}  // namespace parallelrun
