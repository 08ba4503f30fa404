#include "coordinator/start/earlier_run.h"

#include <gmock/gmock.h>

namespace parallelrun::coordinator {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const char* const kPlan = R"({"inputs":[],"miniBatchSize":10})";
const char* const kOtherPlan = R"({"inputs":[],"miniBatchSize":20})";
const char* const kJob = R"({"spec":{"entryScript":"a.py","arguments":["-x"],"nodeCount":1}})";

// What an earlier run left.
enum class Left {
  kNothing,
  kBegun,
  kSomeSucceeded,
  kFailed,
  kNothingSucceeded,
  kDone,
  kDoneInPart
};

job::JobState StateOf(Left left) {
  job::JobState state;
  const auto apply = [&state](const job::Record& record) {
    const Status applied = state.Apply(record, {}, {});
    EXPECT_TRUE(applied.ok()) << applied.error().message;
  };
  if (left == Left::kNothing) return state;
  job::SettingsRecord settings;
  settings.generation = 4;
  settings.code_digest = 7;
  settings.resource_uid = "before";
  settings.plan_settings = kPlan;
  settings.job = kJob;
  apply(settings);
  if (left == Left::kBegun) return state;
  job::PlanChunkRecord chunk;
  chunk.content = job::RankChunk{2};
  apply(chunk);
  apply(job::PlanEndRecord{2, 2});
  const bool any = left != Left::kNothingSucceeded;
  job::ResultRecord result;
  result.items_succeeded = 1;
  if (any) apply(result);
  if (left == Left::kSomeSucceeded) return state;
  job::FailedRecord failed;
  failed.end = job::AttemptEnd::kFinal;
  if (!any) apply(failed);
  failed.id = result.id = 1;
  if (left == Left::kDone) {
    apply(result);
  } else {
    apply(failed);
  }
  const bool succeeded = left == Left::kDone || left == Left::kDoneInPart;
  apply(job::VerdictRecord{succeeded ? job::Outcome::kSucceeded : job::Outcome::kFailed, 1, "R",
                           "m"});
  if (succeeded) apply(job::PublishedRecord{"/out/o.txt", 1, 1, {}});
  return state;
}

// Of a run that stages side files, and has published nothing yet.
constexpr char kStagedPlan[] = R"({"output":{"sideFiles":"Staged"}})";
job::JobState SucceededStaged() {
  job::JobState state = StateOf(Left::kBegun);
  job::SettingsRecord settings;
  settings.generation = 4;
  settings.resource_uid = "before";
  settings.plan_settings = kStagedPlan;
  settings.job = kJob;
  EXPECT_TRUE(state.Apply(settings, {}, {}).ok());
  EXPECT_TRUE(state.Apply(job::VerdictRecord{job::Outcome::kSucceeded, 1, "R", "m"}, {}, {}).ok());
  return state;
}

NewRun Asking(api::IfExists if_exists, bool output_there = false) {
  NewRun run;
  run.if_exists = if_exists;
  run.resource_uid = "new";
  run.code_digest = 7;
  run.plan_settings = kPlan;
  run.job = kJob;
  run.state_folder = "/state";
  run.output_folder = "/out";
  run.output_path = "/out/o.txt";
  run.output_there = output_there;
  return run;
}

constexpr Left kAllLeft[] = {Left::kNothing,   Left::kBegun, Left::kSomeSucceeded,
                             Left::kFailed,    Left::kDone,  Left::kNothingSucceeded,
                             Left::kDoneInPart};
constexpr api::IfExists kAllWishes[] = {api::IfExists::kFail, api::IfExists::kResume,
                                        api::IfExists::kOverwrite, api::IfExists::kRetryFailed};

std::string JobWith(const std::string& dtypes) {
  return R"({"spec":{"entryScript":"a.py","arguments":["-x"],"inputs":[{"name":"in","tabular":{"dtypes":)" +
         dtypes + "}}]}}";
}

TEST(EarlierRun, OtherTypesOfColumnsAreTakenByARetryOnlyAndSaid) {
  const job::JobState state = StateOf(Left::kFailed);
  NewRun run = Asking(api::IfExists::kResume);
  run.job = JobWith(R"({"price":"text"})");
  const Result<StartDecision> resumed = DecideStart(run, state);
  ASSERT_FALSE(resumed.ok());
  EXPECT_THAT(resumed.error().message,
              AllOf(HasSubstr("\n  spec.in.dtypes.price: (none) -> \"text\"\n"),
                    HasSubstr("run the rest with the new ones by --retry-failed")));
  run.if_exists = api::IfExists::kRetryFailed;
  const Result<StartDecision> retried = DecideStart(run, state);
  ASSERT_TRUE(retried.ok());
  EXPECT_THAT(WarningOf(*retried, {}),
              HasSubstr("in.dtypes.price: (none) -> \"text\" (1 mini-batch was read before)"));
  // Where nothing had succeeded, there is nothing to mix.
  run.if_exists = api::IfExists::kResume;
  const Result<StartDecision> over = DecideStart(run, StateOf(Left::kNothingSucceeded));
  ASSERT_TRUE(over.ok());
  EXPECT_TRUE(over->overwrite);
}

// In every combination: nothing that succeeded, and no output, is given up unless somebody said
// Overwrite; what goes on raises the generation by one; who comes again decides nothing.
TEST(EarlierRun, NothingIsGivenUpUnasked) {
  for (const Left left : kAllLeft) {
    const job::JobState state = StateOf(left);
    for (const api::IfExists wish : kAllWishes) {
      for (int bits = 0; bits < 8; ++bits) {
        NewRun run = Asking(wish, (bits & 1) != 0);
        run.in_pod = (bits & 2) != 0;
        if ((bits & 4) != 0) run.plan_settings = kOtherPlan;
        const Result<StartDecision> decided = DecideStart(run, state);
        SCOPED_TRACE(testing::Message()
                     << static_cast<int>(left) << " " << static_cast<int>(wish) << " " << bits);
        if (!decided.ok()) {
          EXPECT_NE(wish, api::IfExists::kOverwrite);
          EXPECT_THAT(decided.error().message,
                      HasSubstr(run.in_pod ? "output.ifExists: Overwrite" : "--overwrite"));
          continue;
        }
        const bool kept_something = state.counts().succeeded > 0 || run.output_there;
        if (wish == api::IfExists::kOverwrite) {
          EXPECT_EQ(decided->overwrite, left != Left::kNothing);
        } else if (kept_something) {
          EXPECT_FALSE(decided->overwrite);
        }
        if (left == Left::kNothing || decided->overwrite) {
          EXPECT_TRUE(decided->write_settings);
          EXPECT_EQ(decided->generation, 1U);
        } else {
          EXPECT_EQ(decided->generation, 5U);
          EXPECT_EQ(run.plan_settings, kPlan);
        }
        run.resource_uid = "before";
        if (left == Left::kNothing) continue;
        const Result<StartDecision> again = DecideStart(run, state);
        ASSERT_TRUE(again.ok());
        EXPECT_FALSE(again->write_settings || again->overwrite);
      }
    }
  }
}

TEST(EarlierRun, AFailedRunWithoutAResultIsStartedOver) {
  for (const api::IfExists wish : {api::IfExists::kFail, api::IfExists::kResume}) {
    NewRun run = Asking(wish);
    run.plan_settings = kOtherPlan;
    EXPECT_TRUE(DecideStart(run, StateOf(Left::kNothingSucceeded))->overwrite);
    EXPECT_TRUE(DecideStart(run, StateOf(Left::kBegun))->overwrite);
  }
  // On a cluster another job may still be at work on it.
  NewRun pod = Asking(api::IfExists::kFail);
  pod.in_pod = true;
  EXPECT_FALSE(DecideStart(pod, StateOf(Left::kBegun)).ok());
  EXPECT_TRUE(DecideStart(pod, StateOf(Left::kNothingSucceeded))->overwrite);
}

TEST(EarlierRun, AFinishedRunGoesOnOnlyToRetryWhatFailed) {
  EXPECT_FALSE(DecideStart(Asking(api::IfExists::kResume, true), StateOf(Left::kDoneInPart))
                   ->write_settings);
  EXPECT_FALSE(
      DecideStart(Asking(api::IfExists::kRetryFailed, true), StateOf(Left::kDone))->write_settings);
  const auto retry =
      DecideStart(Asking(api::IfExists::kRetryFailed, true), StateOf(Left::kDoneInPart));
  EXPECT_TRUE(retry->write_settings);
  EXPECT_EQ(retry->generation, 5U);
  EXPECT_FALSE(retry->overwrite);
  EXPECT_TRUE(
      DecideStart(Asking(api::IfExists::kRetryFailed), StateOf(Left::kFailed))->write_settings);
}

TEST(EarlierRun, AnOutputThatIsGoneIsPublishedAgain) {
  for (const api::IfExists wish : {api::IfExists::kResume, api::IfExists::kRetryFailed}) {
    NewRun run = Asking(wish);
    const auto decided = DecideStart(run, StateOf(Left::kDone));
    EXPECT_TRUE(decided->write_settings);
    EXPECT_EQ(decided->generation, 5U);
    EXPECT_FALSE(decided->overwrite);
    run.output_path.clear();  // SummaryOnly publishes nothing
    EXPECT_FALSE(DecideStart(run, StateOf(Left::kDone))->write_settings);
  }
}

// They are in no ledger, so that only another run() brings them back.
TEST(EarlierRun, MiniBatchesWhoseStagedSideFilesAreGoneAreRunAgain) {
  NewRun run = Asking(api::IfExists::kResume);
  EXPECT_FALSE(AsksForSideFiles(run, StateOf(Left::kBegun)));
  job::JobState state = SucceededStaged();
  run.plan_settings = kStagedPlan;
  EXPECT_TRUE(AsksForSideFiles(run, state));
  EXPECT_FALSE(AsksForSideFiles(Asking(api::IfExists::kOverwrite), state));
  EXPECT_FALSE(DecideStart(run, state)->continues) << "it is to be published, no more";
  run.side_files_lost = true;
  EXPECT_TRUE(DecideStart(run, state)->continues);
  EXPECT_EQ(DecideStart(run, state)->generation, 5U);
  run.resource_uid = "before";
  EXPECT_FALSE(AsksForSideFiles(run, state)) << "its own restart";
  ASSERT_TRUE(state.Apply(job::PublishedRecord{"/out/o.txt", 1, 1, {}}, {}, {}).ok());
  run.resource_uid = "new";
  EXPECT_FALSE(AsksForSideFiles(run, state));
}

// With SummaryOnly it is the list of side files, and something of the run lies in its folder.
TEST(EarlierRun, AListOfSideFilesIsPublishedAgain) {
  job::JobState state = SucceededStaged();
  ASSERT_TRUE(state.Apply(job::PublishedRecord{"/out/_files.jsonl", 1, 1, {}}, {}, {}).ok());
  NewRun run = Asking(api::IfExists::kResume, true);
  run.output_path.clear();
  run.plan_settings = kStagedPlan;
  EXPECT_TRUE(AsksForDamage(run, state));
  EXPECT_FALSE(DecideStart(run, state)->write_settings);
  run.output_damage = "is not there";
  EXPECT_TRUE(DecideStart(run, state)->write_settings);
}

TEST(EarlierRun, AnOutputThatIsDamagedIsPublishedAgainAndToldOf) {
  NewRun run = Asking(api::IfExists::kResume, true);
  EXPECT_TRUE(AsksForDamage(run, StateOf(Left::kDone)));
  EXPECT_FALSE(AsksForDamage(run, StateOf(Left::kSomeSucceeded)));
  EXPECT_FALSE(AsksForDamage(Asking(api::IfExists::kOverwrite, true), StateOf(Left::kDone)));
  EXPECT_FALSE(AsksForDamage(Asking(api::IfExists::kResume, false), StateOf(Left::kDone)));
  EXPECT_FALSE(DecideStart(run, StateOf(Left::kDone))->write_settings);
  run.output_damage = "has 0 bytes, 1 were published";
  const auto decided = DecideStart(run, StateOf(Left::kDone));
  EXPECT_TRUE(decided->write_settings);
  EXPECT_FALSE(decided->overwrite);
  EXPECT_FALSE(decided->may_replace);
  EXPECT_EQ(WarningOf(*decided, {}),
            "the output has 0 bytes, 1 were published: it is published again from the ledger");
  run.resource_uid = "before";
  EXPECT_FALSE(AsksForDamage(run, StateOf(Left::kDone))) << "its own restart";
}

// A person who has said so once does not have to say it again.
TEST(EarlierRun, ARunThatMayReplaceKeepsThat) {
  EXPECT_TRUE(DecideStart(Asking(api::IfExists::kOverwrite, true), job::JobState())->may_replace);
  EXPECT_TRUE(DecideStart(Asking(api::IfExists::kOverwrite), StateOf(Left::kDone))->may_replace);
  EXPECT_FALSE(DecideStart(Asking(api::IfExists::kFail), job::JobState())->may_replace);
  job::JobState state = StateOf(Left::kSomeSucceeded);
  job::SettingsRecord settings;
  settings.generation = 4;
  settings.plan_settings = kPlan;
  settings.job = kJob;
  settings.may_replace = true;
  ASSERT_TRUE(state.Apply(settings, {}, {}).ok());
  EXPECT_TRUE(DecideStart(Asking(api::IfExists::kResume), state)->may_replace);
}

TEST(EarlierRun, RefusalsSayWhatCanBeDone) {
  const auto unfinished = DecideStart(Asking(api::IfExists::kFail), StateOf(Left::kSomeSucceeded));
  EXPECT_THAT(unfinished.error().message, HasSubstr("--resume"));
  const auto finished = DecideStart(Asking(api::IfExists::kFail, true), StateOf(Left::kDone));
  EXPECT_THAT(finished.error().message, HasSubstr("finished already"));
  NewRun other = Asking(api::IfExists::kRetryFailed, true);
  other.plan_settings = kOtherPlan;
  EXPECT_THAT(DecideStart(other, StateOf(Left::kDoneInPart)).error().message,
              HasSubstr("miniBatchSize"));
  EXPECT_THAT(
      DecideStart(Asking(api::IfExists::kFail, true), StateOf(Left::kNothing)).error().message,
      HasSubstr("move it away"));
}

TEST(EarlierRun, ChangedCodeIsTaken) {
  NewRun run = Asking(api::IfExists::kResume);
  EXPECT_THAT(DecideStart(run, StateOf(Left::kFailed))->changed, IsEmpty());
  run.code_digest = 8;
  run.job = R"({"spec":{"entryScript":"a.py","arguments":["-y"],"nodeCount":2}})";
  EXPECT_THAT(DecideStart(run, StateOf(Left::kFailed))->changed,
              ElementsAre("the code", R"(spec.arguments[0]: "-x" -> "-y")"));
  run.code_change = "a.py was changed";
  EXPECT_EQ(DecideStart(run, StateOf(Left::kFailed))->changed.front(),
            "the code (a.py was changed)");
  run.code_digest = 7;
  EXPECT_THAT(DecideStart(run, StateOf(Left::kFailed))->changed,
              ElementsAre(R"(spec.arguments[0]: "-x" -> "-y")"));
}

TEST(EarlierRun, OfAFinishedRunChangedCodeIsToldOf) {
  NewRun run = Asking(api::IfExists::kResume, true);
  EXPECT_EQ(WarningOf(*DecideStart(run, StateOf(Left::kDone)), {}), "");
  run.code_digest = 8;
  const auto decided = DecideStart(run, StateOf(Left::kDone));
  EXPECT_TRUE(decided->has_finished && !decided->write_settings);
  EXPECT_THAT(WarningOf(*decided, {}),
              AllOf(HasSubstr("changed since the run was started: the code. It has finished"),
                    HasSubstr("--overwrite")));
  run.code_digest = 7;
  run.job = R"({"spec":{"entryScript":"a.py","arguments":["-x"],"errorThreshold":0}})";
  EXPECT_THAT(DecideStart(run, StateOf(Left::kDoneInPart))->changed,
              ElementsAre("spec.errorThreshold: (none) -> 0"));
  run.output_there = false;
  EXPECT_THAT(DecideStart(run, StateOf(Left::kFailed))->changed, IsEmpty()) << "it counts at once";
}

TEST(EarlierRun, OtherFilesAreRefusedUnlessThereIsNothingToKeep) {
  const NewRun run = Asking(api::IfExists::kResume);
  plan::InputChanges changes;
  changes.differ = {12, {"inputs[in]: /in/a is gone"}};
  changes.added = {1, {"inputs[in]: /in/b"}};
  const job::JobState failed = StateOf(Left::kFailed);
  const Result<StartDecision> decision = DecideStart(run, failed);
  ASSERT_TRUE(decision.ok() && decision->continues);
  const auto refused = DecideWithInputs(run, failed, *decision, changes);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(
      refused.error().message,
      AllOf(HasSubstr("\n  inputs[in]: /in/a is gone\n  and 11 more\n"), HasSubstr("--overwrite"),
            HasSubstr("files that were mended can be run alone, by --only FILE")));
  NewRun pod = run;
  pod.in_pod = true;
  EXPECT_THAT(DecideWithInputs(pod, failed, *decision, changes).error().message,
              AllOf(HasSubstr("by a job of their own"), Not(HasSubstr("--"))));

  const job::JobState nothing = StateOf(Left::kNothingSucceeded);
  const auto over = DecideWithInputs(run, nothing, *DecideStart(run, nothing), changes);
  ASSERT_TRUE(over.ok());
  EXPECT_TRUE(over->overwrite && over->write_settings);
  EXPECT_EQ(over->generation, 1U);
  EXPECT_EQ(WarningOf(*over, changes), "");
}

TEST(EarlierRun, AddedFilesAreLeftOutWithAWarning) {
  const NewRun run = Asking(api::IfExists::kRetryFailed);
  plan::InputChanges changes;
  EXPECT_EQ(WarningOf(StartDecision(), changes), "");
  changes.added = {3, {"inputs[in]: /in/b", "inputs[in]: /in/\nc"}};
  const job::JobState failed = StateOf(Left::kFailed);
  StartDecision decision = *DecideWithInputs(run, failed, *DecideStart(run, failed), changes);
  EXPECT_TRUE(decision.continues);
  EXPECT_EQ(decision.generation, 5U);
  EXPECT_THAT(WarningOf(decision, changes),
              AllOf(HasSubstr("not part of this run: inputs[in]: /in/b; "),
                    HasSubstr("; and 1 more"), Not(HasSubstr("\n"))));
  decision.changed = {"the code"};
  EXPECT_THAT(WarningOf(decision, changes),
              AllOf(HasSubstr("since the run was started: the code"),
                    HasSubstr("the rest runs with what has changed. Added")));
}

TEST(EarlierRun, AFinishedRunOfOtherFilesIsNoSuccess) {
  const NewRun run = Asking(api::IfExists::kResume, true);
  const job::JobState done = StateOf(Left::kDone);
  const StartDecision decision = *DecideStart(run, done);
  EXPECT_TRUE(decision.has_finished && !decision.continues);
  EXPECT_TRUE(DecideWithInputs(run, done, decision, {}).ok());
  plan::InputChanges changes;
  changes.added = {2, {"inputs[in]: /in/b"}};
  EXPECT_THAT(DecideWithInputs(run, done, decision, changes).error().message,
              AllOf(HasSubstr("this run has finished, and its inputs have changed since:\n"),
                    HasSubstr("/in/b (added)\n  and 1 more\n"), HasSubstr("--overwrite")));
  changes = {};
  changes.differ = {1, {"inputs[in]: /in/a is gone"}};
  EXPECT_EQ(DecideWithInputs(run, done, decision, changes).error().code, Code::kInvalid);
}

TEST(EarlierRun, ResultsAreVoidWhereShutdownWasToWriteThemOrWhoAsks) {
  job::JobState failed = StateOf(Left::kSomeSucceeded);
  const job::ProcessId by{0, 0};
  const auto apply = [&](const job::Record& record) {
    ASSERT_TRUE(failed.Apply(record, {}, {}).ok());
  };
  apply(job::ShutdownRecord{by.node, by.number, job::ProcessEnd::kOpen, "", ""});
  NewRun run = Asking(api::IfExists::kResume);
  EXPECT_FALSE(DecideStart(run, failed)->run_again) << "it has no result yet";
  for (job::BatchId id = 0; id < failed.counts().planned; ++id) {
    if (!failed.settled(id))
      apply(job::ResultRecord{{.items_succeeded = 1, .row_count = 1}, id, {9, 1}, 0, 0, ""});
  }
  EXPECT_FALSE(DecideStart(run, failed)->run_again) << "its rows are there";
  EXPECT_TRUE(DecideStart(Asking(api::IfExists::kRetryFailed), failed)->run_again);
  run.output_path.clear();
  EXPECT_TRUE(DecideStart(run, failed)->run_again);
}

// Who comes again has nothing to compare.
TEST(EarlierRun, FilesAreComparedWhenAPersonContinues) {
  EXPECT_TRUE(
      DecideStart(Asking(api::IfExists::kResume), StateOf(Left::kSomeSucceeded))->continues);
  EXPECT_TRUE(
      DecideStart(Asking(api::IfExists::kRetryFailed), StateOf(Left::kDoneInPart))->continues);
  EXPECT_FALSE(
      DecideStart(Asking(api::IfExists::kResume, true), StateOf(Left::kDoneInPart))->continues);
  EXPECT_FALSE(DecideStart(Asking(api::IfExists::kOverwrite), StateOf(Left::kFailed))->continues);
  EXPECT_FALSE(DecideStart(Asking(api::IfExists::kResume), StateOf(Left::kNothing))->continues);
  NewRun again = Asking(api::IfExists::kResume);
  again.resource_uid = "before";
  EXPECT_FALSE(DecideStart(again, StateOf(Left::kFailed))->continues);
}

// The script writes its own results there: those of an earlier run would stand among them.
NewRun AskingForSummary(api::IfExists if_exists, const std::string& lies_there) {
  NewRun run = Asking(if_exists, !lies_there.empty());
  run.output_path = "";
  run.lies_there = lies_there;
  return run;
}

TEST(EarlierRun, AFolderOfResultsThatIsNotEmptyIsRefused) {
  for (const api::IfExists wish :
       {api::IfExists::kFail, api::IfExists::kResume, api::IfExists::kRetryFailed}) {
    const job::JobState nothing;
    const Result<StartDecision> refused =
        DecideStart(AskingForSummary(wish, "part-0.csv"), nothing);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Code::kExists);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("/out is not empty (part-0.csv is there)"),
                      HasSubstr("--overwrite"), HasSubstr("Move it away")));
    EXPECT_TRUE(DecideStart(AskingForSummary(wish, ""), nothing).ok());
  }
  // What a run that came to nothing had written by then is no less there.
  const job::JobState failed = StateOf(Left::kNothingSucceeded);
  EXPECT_TRUE(DecideStart(AskingForSummary(api::IfExists::kFail, ""), failed).ok());
  const Result<StartDecision> refused =
      DecideStart(AskingForSummary(api::IfExists::kFail, "part-0.csv"), failed);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("--resume"), HasSubstr("--overwrite")));
}

TEST(EarlierRun, WhatARunContinuesItMayHaveWritten) {
  for (const Left left : {Left::kSomeSucceeded, Left::kFailed, Left::kNothingSucceeded}) {
    const Result<StartDecision> resumed =
        DecideStart(AskingForSummary(api::IfExists::kResume, "part-0.csv"), StateOf(left));
    ASSERT_TRUE(resumed.ok()) << resumed.error().message;
    EXPECT_FALSE(resumed->overwrite);
    EXPECT_EQ(WarningOf(*resumed, {}), "");
  }
}

TEST(EarlierRun, ResultsAreNotRemovedForWhatMayBeEmpty) {
  for (const Left left : {Left::kNothing, Left::kDone, Left::kFailed}) {
    const job::JobState state = StateOf(left);
    NewRun run = AskingForSummary(api::IfExists::kOverwrite, "part-0.csv");
    EXPECT_TRUE(DecideStart(run, state).ok());
    run.empty_if_existing = "inputs[day]";
    const Result<StartDecision> refused = DecideStart(run, state);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("inputs[day]: allowEmpty: Existing does not go with --overwrite"),
                      HasSubstr("write allowEmpty: Missing")));
    run.resource_uid = "before";  // the same job, which has begun
    EXPECT_EQ(DecideStart(run, state).ok(), left != Left::kNothing);
    run = AskingForSummary(api::IfExists::kResume, "");
    run.empty_if_existing = "inputs[day]";
    EXPECT_TRUE(DecideStart(run, state).ok());
    run = Asking(api::IfExists::kOverwrite, true);  // it stays until the new one is there
    run.empty_if_existing = "inputs[day]";
    EXPECT_TRUE(DecideStart(run, state).ok());
  }
}

TEST(EarlierRun, WhatHoldsRows) {
  NewRun run = Asking(api::IfExists::kOverwrite, true);
  const job::JobState done = StateOf(Left::kDone);
  EXPECT_FALSE(HoldsRows(run, done)) << "a text file of no row";
  run.output_bytes = 1;
  EXPECT_TRUE(HoldsRows(run, done));
  EXPECT_TRUE(HoldsRows(run, job::JobState())) << "nobody knows of what";
  // A header alone, or Parquet without a row group.
  job::JobState empty = StateOf(Left::kBegun);
  ASSERT_TRUE(empty.Apply(job::PlanEndRecord{0, 0}, {}, {}).ok());
  ASSERT_TRUE(
      empty.Apply(job::VerdictRecord{job::Outcome::kSucceeded, 1, "R", "EMPTY"}, {}, {}).ok());
  ASSERT_TRUE(empty.Apply(job::PublishedRecord{"/out/o.txt", 1, 0, {}}, {}, {}).ok());
  EXPECT_FALSE(HoldsRows(run, empty));
  run.output_bytes = 2;
  EXPECT_TRUE(HoldsRows(run, empty)) << "another file is there by now";
}

TEST(EarlierRun, TheLogsOfARunThatIsStartedOverAreSetAside) {
  for (const Left left : kAllLeft) {
    for (const api::IfExists wish : kAllWishes) {
      const Result<StartDecision> decided = DecideStart(Asking(wish), StateOf(left));
      if (!decided.ok()) continue;
      // Also where its state is gone, if somebody says so.
      const bool expected = decided->overwrite || wish == api::IfExists::kOverwrite;
      EXPECT_EQ(decided->logs_aside, expected) << static_cast<int>(left) << static_cast<int>(wish);
    }
  }
  NewRun again = Asking(api::IfExists::kOverwrite);
  again.had_output = true;  // they are its own
  EXPECT_FALSE(DecideStart(again, {})->logs_aside);
}

}  // namespace
}  // namespace parallelrun::coordinator
