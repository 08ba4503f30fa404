#include "coordinator/start/earlier_run.h"

#include <spdlog/fmt/fmt.h>

#include <optional>
#include <vector>

#include "api/settings.h"
#include "base/count_of.h"
#include "base/escape.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMaxChanges = 1000;  // bytes of what is told of them

std::string Lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

// How a user asks for it: a pod has no command line.
std::string AskFor(const NewRun& run, api::IfExists wanted) {
  const bool resume = wanted == api::IfExists::kResume;
  if (run.in_pod) return resume ? "output.ifExists: Resume" : "output.ifExists: Overwrite";
  return resume ? "--resume" : "--overwrite";
}

bool HasFinished(const job::JobState& state) {
  return state.published() ||
         (state.verdict() && state.verdict()->outcome == job::Outcome::kSucceeded);
}

// There is nothing to keep, and nobody who may still be at work on it: a state folder is locked by
// the command that works on it, and a job on a cluster says when it is over.
bool NothingToKeep(const NewRun& run, const job::JobState& state) {
  const job::JobCounts& counts = state.counts();
  const bool over = state.verdict() || !run.in_pod;
  return over && counts.succeeded + counts.split == 0 && !run.output_there;
}

// Other thresholds count at once, but for a run that was judged by its own.
std::vector<std::string> ChangesOfRun(const NewRun& run, const job::Settings& before, bool judged) {
  std::vector<std::string> changes;
  if (before.code_digest != run.code_digest) {
    changes.push_back("the code" + (run.code_change.empty() ? "" : " (" + run.code_change + ")"));
  }
  const auto add = [&](std::string (*part)(std::string_view)) {
    const Result<std::vector<std::string>> others =
        api::Differences(part(before.job), part(run.job));
    if (others.ok()) changes.insert(changes.end(), others->begin(), others->end());
  };
  add(api::ScriptSettings);
  if (judged) add(api::ThresholdSettings);
  return changes;
}

// Finished mini-batches keep what was read with the old types: only a person who asks for what
// failed to be run again can want that.
Error OtherTypes(const NewRun& run, const std::vector<std::string>& differences) {
  const std::string retry = run.in_pod ? "output.ifExists: RetryFailed" : "--retry-failed";
  return {Code::kInvalid,
          "the run cannot be resumed with other types of columns than it was begun with:" +
              Lines(differences) + "\nwrite them as they were, run the rest with the new ones by " +
              retry + ", or start over with " + AskFor(run, api::IfExists::kOverwrite)};
}

// Results are removed when the run begins, and that the inputs are empty is known when all of them
// were listed.
Status MayOverwrite(const NewRun& run) {
  const bool overwrites = run.if_exists == api::IfExists::kOverwrite;
  if (!overwrites || !run.output_path.empty() || run.empty_if_existing.empty()) return {};
  return Error{Code::kInvalid,
               fmt::format("{}: allowEmpty: Existing does not go with {} of output.action: "
                           "SummaryOnly, which removes the results of the earlier run before it is "
                           "known that nothing takes their place: write allowEmpty: Missing where "
                           "that is meant, or choose another folder for each run",
                           run.empty_if_existing, AskFor(run, api::IfExists::kOverwrite))};
}

Result<StartDecision> DecideFresh(const NewRun& run) {
  if (const Status may = MayOverwrite(run); !may.ok()) return may.error();
  StartDecision decision;
  decision.write_settings = true;
  decision.may_replace = run.if_exists == api::IfExists::kOverwrite;
  decision.logs_aside = decision.may_replace && !run.had_output;
  if (!run.output_there || decision.may_replace) return decision;
  const std::string overwriting = AskFor(run, api::IfExists::kOverwrite);
  if (run.output_path.empty()) {
    return Error{Code::kExists,
                 fmt::format("{} is not empty ({} is there), and that is not of a run that could "
                             "be continued: among it nobody could tell what this run has written. "
                             "Move it away, choose another folder, or start with {}, which only "
                             "removes what a finished run of this job has left",
                             run.output_folder, Printable(run.lies_there, 300), overwriting)};
  }
  return Error{Code::kExists, run.output_path +
                                  " exists, and is not of a run that could be continued: move it "
                                  "away, choose another output, or replace it with " +
                                  overwriting};
}

// With an empty history, and nothing of the run before that could be taken for this one's.
void StartOver(StartDecision& decision) {
  decision.overwrite = true;
  decision.logs_aside = true;
}

Error Refused(const NewRun& run, const job::JobState& state) {
  const std::string overwriting = AskFor(run, api::IfExists::kOverwrite);
  if (!HasFinished(state)) {
    return {Code::kExists,
            fmt::format("an unfinished run of this job is in {}: continue it with {}, or start "
                        "over with {}",
                        run.state_folder, AskFor(run, api::IfExists::kResume), overwriting)};
  }
  const std::string trial = api::TrialOf(state.settings()->plan_settings);
  return {Code::kExists,
          fmt::format("{} exists: {} has finished already; start over with {}, or choose another "
                      "output",
                      run.output_path.empty() ? run.output_folder : run.output_path,
                      trial.empty() ? "this job" : "a trial of this job, of " + trial + ",",
                      overwriting)};
}

Error NotTheSame(const NewRun& run, const std::vector<std::string>& differences) {
  return {Code::kInvalid,
          "the run cannot be continued, since its mini-batches would not be the same:" +
              Lines(differences) + "\nundo the change, or start over with " +
              AskFor(run, api::IfExists::kOverwrite)};
}

// Whoever has mended a bad file and is refused for it wants the rows of that file, and to keep the
// others.
std::string MendedAlone(const NewRun& run) {
  return run.in_pod
             ? "; files that were mended can be run by a job of their own (inputs[].pattern) "
               "with another output, and the rows of this one stay"
             : "; files that were mended can be run alone, by --only FILE with another "
               "output, and the rows of this one stay";
}

// "and 7 more", or nothing.
std::string Others(const plan::InputChanges::Files& files) {
  const uint64_t others = files.count - files.named.size();
  return others == 0 ? "" : fmt::format("and {} more", others);
}

// Whoever hears of a success believes that it is of the files that are there.
Result<StartDecision> WithFinished(const NewRun& run, const StartDecision& decision,
                                   const plan::InputChanges& changes) {
  if (changes.differ.count + changes.added.count == 0) return decision;
  std::vector<std::string> lines = changes.differ.named;
  if (const std::string others = Others(changes.differ); !others.empty()) lines.push_back(others);
  for (const std::string& added : changes.added.named) lines.push_back(added + " (added)");
  if (const std::string others = Others(changes.added); !others.empty()) lines.push_back(others);
  return Error{
      Code::kInvalid,
      "this run has finished, and its inputs have changed since:" + Lines(lines) +
          "\nits output is that of the files as they were; for one of those that are there "
          "now start over with " +
          AskFor(run, api::IfExists::kOverwrite)};
}

// A person continues it.
bool GoesOn(const NewRun& run, const job::JobState& state) {
  const bool asks =
      run.if_exists == api::IfExists::kResume || run.if_exists == api::IfExists::kRetryFailed;
  return asks && state.settings() && state.settings()->resource_uid != run.resource_uid;
}

}  // namespace

bool HoldsRows(const NewRun& run, const job::JobState& state) {
  const std::optional<job::Published>& own = state.published();
  const bool of_nothing = own && own->rows == 0 && own->bytes == run.output_bytes;
  return run.output_bytes > 0 && !of_nothing;
}

bool AsksForDamage(const NewRun& run, const job::JobState& state) {
  return GoesOn(run, state) && run.output_there && state.published();
}

bool AsksForSideFiles(const NewRun& run, const job::JobState& state) {
  return GoesOn(run, state) && state.stages_side_files() && !state.published();
}

Result<StartDecision> DecideStart(const NewRun& run, const job::JobState& state) {
  if (!state.settings()) return DecideFresh(run);
  StartDecision decision;
  const job::Settings& before = *state.settings();
  // The same job, whose coordinator was restarted: what a person asked for was done by then.
  if (before.resource_uid == run.resource_uid) {
    return decision;
  }
  decision.write_settings = true;
  if (const Status may = MayOverwrite(run); !may.ok()) return may.error();
  if (run.if_exists == api::IfExists::kOverwrite) {
    StartOver(decision);
    decision.may_replace = true;
    return decision;
  }
  const bool nothing = NothingToKeep(run, state);
  if (run.if_exists == api::IfExists::kFail) {
    if (!nothing) return Refused(run, state);
    StartOver(decision);
    return decision;
  }
  const Result<std::vector<std::string>> changes =
      api::Differences(before.plan_settings, run.plan_settings);
  if (!changes.ok()) return changes.error();
  if (!changes->empty()) {
    if (!nothing) return NotTheSame(run, *changes);
    StartOver(decision);
    return decision;
  }
  const Result<std::vector<std::string>> types =
      api::Differences(api::WrittenTypes(before.job), api::WrittenTypes(run.job));
  if (!types.ok()) return types.error();
  if (!types->empty() && nothing) {
    StartOver(decision);
    return decision;
  }
  if (!types->empty() && run.if_exists != api::IfExists::kRetryFailed)
    return OtherTypes(run, *types);
  const job::JobCounts& counts = state.counts();
  // With an appended file every row is there, whatever a shutdown() had to write besides: only who
  // asks for it has them run again. Without one, what it had to write is the result.
  const bool asks = run.if_exists == api::IfExists::kRetryFailed;
  const bool unclosed = !state.shutdowns().NotClosed().empty();
  const bool retry = asks && (counts.failed + counts.items_isolated > 0 || unclosed);
  // Every row is in the ledger.
  const bool publishes = !run.output_path.empty() || state.stages_side_files();
  const bool damaged =
      state.published() && publishes && (!run.output_there || !run.output_damage.empty());
  // A finished run stays finished, unless what failed is to be tried again, or published again.
  decision.write_settings = !HasFinished(state) || retry || damaged || run.side_files_lost;
  decision.continues = decision.write_settings;
  decision.has_finished = !decision.continues;
  decision.run_again = decision.continues && unclosed && (asks || run.output_path.empty());
  decision.may_replace = before.may_replace;
  if (run.output_there) decision.damage = run.output_damage;
  decision.changed = ChangesOfRun(run, before, decision.has_finished);
  for (const std::string& type : *types) {
    decision.changed.push_back(fmt::format("{} ({} read before)", type.substr(type.find('.') + 1),
                                           CountOf(counts.succeeded, "mini-batch", "was", "were")));
  }
  decision.generation = before.generation + 1;
  return decision;
}

Result<StartDecision> DecideWithInputs(const NewRun& run, const job::JobState& state,
                                       const StartDecision& decision,
                                       const plan::InputChanges& changes) {
  if (decision.has_finished) return WithFinished(run, decision, changes);
  if (changes.differ.count == 0) return decision;
  if (NothingToKeep(run, state)) {
    StartDecision over;
    over.write_settings = true;
    StartOver(over);
    return over;
  }
  std::vector<std::string> lines = changes.differ.named;
  if (const std::string others = Others(changes.differ); !others.empty()) lines.push_back(others);
  const Error refused = NotTheSame(run, lines);
  return Error{refused.code, refused.message + MendedAlone(run)};
}

std::string WarningOf(const StartDecision& decision, const plan::InputChanges& changes) {
  std::string warning;
  if (!decision.changed.empty()) {
    warning = fmt::format(
        "changed since the run was started: {}. {}",
        Printable(fmt::format("{}", fmt::join(decision.changed, "; ")), kMaxChanges),
        decision.has_finished
            ? "It has finished, so that nothing is run or judged again, and its output is as it "
              "was: for another one start over with --overwrite (output.ifExists: Overwrite)"
            : "Finished mini-batches keep their rows, and the rest runs with what has changed");
  }
  if (changes.added.count > 0 && !decision.overwrite) {
    std::vector<std::string> files = changes.added.named;
    if (const std::string others = Others(changes.added); !others.empty()) files.push_back(others);
    warning += fmt::format("{} since the inputs were listed, and not part of this run: {}",
                           warning.empty() ? "added" : ". Added",
                           Printable(fmt::format("{}", fmt::join(files, "; ")), kMaxChanges));
  }
  if (!decision.damage.empty() && !decision.overwrite) {
    warning += fmt::format("{}the output {}: it is published again from the ledger",
                           warning.empty() ? "" : ". Also, ", decision.damage);
  }
  return warning;
}

}  // namespace parallelrun::coordinator
