#include "cli/run/display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/job_name.h"
#include "api/parse.h"
#include "cli/run/quick_job.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

json Progress() {
  return json::parse(R"({
    "state": "Running", "perSecond": 20.54, "secondsRemaining": 6, "paused": "", "rows": 610,
    "miniBatches": {"total": 180, "planned": 180, "succeeded": 61, "failed": 2, "running": 4, "pending": 113},
    "items": {"total": 1797, "succeeded": 610, "failed": 20},
    "nodes": [{"index": 0, "registered": true}, {"index": 1, "registered": false}],
    "errors": [{"kind": "Exception", "message": "no\u001b[31m such file", "count": 3, "miniBatch": 7,
                "node": 0, "process": "process001", "log": "user/error/0/process001.txt"}],
    "failedAttempts": 3, "verdict": null, "output": null})");
}

Leads LeadsOf(const std::string& resume) {
  return {"/out/logs", "/out/my logs/report.csv",
          resume,      "parallelrun run job.yaml --retry-failed",
          false,       [](const std::string&) { return true; }};
}

// 20 of 1797 items, 2 of them without an element.
json WithLosses() {
  json progress = Progress();
  progress["state"] = "Succeeded";
  progress["verdict"] = {{"reason", "CompletedWithFailures"},
                         {"message", "20 of 1797 items have no row: 2 of 180 mini-batches failed"}};
  progress["losses"] = {{"items", 20},
                        {"withoutElement", 2},
                        {"allowed", false},
                        {"first", {"/in/a\x1b.png", "/in/b.png"}}};
  return progress;
}

TEST(DisplayTest, TheProgressLine) {
  EXPECT_EQ(ProgressLine(Progress()),
            "63 of 180 mini-batches, 20.5/s, 2 failed, 6.0s left, 1 node");
}

TEST(DisplayTest, WhileTheListingGoesOnTotalsAreAtLeast) {
  json progress = Progress();
  progress["miniBatches"]["total"] = nullptr;
  progress["secondsRemaining"] = nullptr;
  progress["state"] = "Draining";
  progress["paused"] = "disk full";
  EXPECT_EQ(
      ProgressLine(progress),
      "63 of at least 180 mini-batches, 20.5/s, 2 failed, 1 node, Draining, PAUSED: disk full");
}

TEST(DisplayTest, WhatNodesFetchBeforeTheyStartIsToldAsItIs) {
  json progress = Progress();
  progress["secondsRemaining"] = nullptr;
  progress["state"] = "Starting";
  progress["fetching"] = "node 0: fetching side input model, 1.2 of 4.0 GB";
  EXPECT_THAT(ProgressLine(progress),
              testing::EndsWith(", Starting, node 0: fetching side input model, 1.2 of 4.0 GB"));
}

TEST(DisplayTest, InitThatTakesLongIsTold) {
  json progress = Progress();
  progress["secondsRemaining"] = nullptr;
  progress["state"] = "Starting";
  progress["init"] =
      "init() has been running for 50s on 1 node; node 0, process000: load\x1b m.py:7";
  EXPECT_THAT(ProgressLine(progress),
              testing::EndsWith(", Starting, init() has been running for 50s on 1 node; node 0, "
                                "process000: load\\x1b m.py:7"));
}

TEST(DisplayTest, AStoreThatKeepsNodesWaitingIsTold) {
  json progress = Progress();
  progress["storeWaits"] = "node 0: throttled by the store s3://box\x1b since 2026-11-21T10:00:00Z";
  EXPECT_THAT(ProgressLine(progress),
              testing::EndsWith(", 1 node, node 0: throttled by the store s3://box\\x1b since "
                                "2026-11-21T10:00:00Z"));
}

TEST(DisplayTest, BeforeAnythingIsListedThereIsNothingToCount) {
  json progress = Progress();
  progress["miniBatches"] = {{"total", nullptr}, {"planned", 0}, {"succeeded", 0}, {"failed", 0}};
  progress["secondsRemaining"] = nullptr;
  progress["state"] = "Starting";
  EXPECT_EQ(ProgressLine(progress), "listing the input, 1 node, Starting");
  progress["nodes"] = json::array();
  EXPECT_EQ(ProgressLine(progress), "listing the input, Starting");
  progress["state"] = "Running";
  EXPECT_EQ(ProgressLine(progress), "listing the input, 0 nodes");
  progress["miniBatches"]["total"] = 0;
  EXPECT_EQ(ProgressLine(progress).find("0 of 0 mini-batches"), 0U);
}

TEST(DisplayTest, TheSummaryNamesTheErrorsAndHowToContinue) {
  const std::string text =
      Summary(Progress(), LeadsOf("parallelrun run job.yaml --resume"), seconds(3), 0);
  EXPECT_NE(text.find("3 x Exception: no\\x1b[31m such file"), std::string::npos) << text;
  EXPECT_NE(text.find("/out/logs/user/error/0/process001.txt"), std::string::npos);
  EXPECT_NE(text.find("To continue: parallelrun run job.yaml --resume"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(DisplayTest, TheSummaryNamesTheReportThatIsThere) {
  Leads leads = LeadsOf("again");
  const std::string line = "  report        /out/logs/report.html\n";
  EXPECT_NE(Summary(Progress(), leads, seconds(3), 0).find(line), std::string::npos);
  leads.is_there = [](const std::string&) { return false; };
  EXPECT_EQ(Summary(Progress(), leads, seconds(3), 0).find(line), std::string::npos);
}

TEST(DisplayTest, TheSummaryOfATrialSaysSo) {
  json progress = Progress();
  progress["trial"] = "the first 20 items (--limit)";
  EXPECT_NE(Summary(progress, LeadsOf("again"), seconds(3), 0)
                .find("  trial         of the first 20 items (--limit) alone\n"),
            std::string::npos);
}

TEST(DisplayTest, ASuccessDoesNotAskToContinue) {
  json progress = Progress();
  progress["state"] = "Succeeded";
  progress["verdict"] = {{"reason", "Complete"}, {"message", "all 180 mini-batches succeeded"}};
  progress["output"] = {{"path", "/out/x.txt"}, {"rows", 610}, {"bytes", 7000}};
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_EQ(text.find("Succeeded (Complete): all 180 mini-batches succeeded"), 0u);
  EXPECT_NE(text.find("/out/x.txt (610 rows, 7000 bytes)"), std::string::npos);
  EXPECT_EQ(text.find("To continue"), std::string::npos);
}

// What was true of it at its start is true of what it gave, and the start may have been hours ago.
TEST(DisplayTest, TheSummaryRepeatsTheWarning) {
  json progress = Progress();
  EXPECT_EQ(Summary(progress, LeadsOf("again"), seconds(3), 0).find("warning"), std::string::npos);
  progress["warning"] = "changed since the run was started: rows.dtypes.zip\x1b";
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_NE(
      text.find("\n  warning       changed since the run was started: rows.dtypes.zip\\x1b\n"),
      std::string::npos)
      << text;
}

TEST(DisplayTest, AFailureBeforeTheFirstMiniBatchDoesNotAskToContinue) {
  json progress = Progress();
  progress["state"] = "Failed";
  progress["verdict"] = {{"reason", "InputUnusable"}, {"message", "/ini does not exist"}};
  progress["miniBatches"]["succeeded"] = 0;
  progress["miniBatches"]["failed"] = 0;
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_NE(text.find("fix the error above and run the same command again"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("To continue"), std::string::npos);
}

TEST(DisplayTest, LossesAreNamedWithWhatToDo) {
  const json progress = WithLosses();
  EXPECT_TRUE(LostUnallowed(progress));
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_EQ(text.find("Finished with losses: 20 of 1797 items have no row: 2 of 180 mini-batches "
                      "failed (CompletedWithFailures)\n"),
            0U)
      << text;
  for (const char* line :
       {"\n  /in/a\\x1b.png\n  /in/b.png\n", "\nTo see them: less '/out/my logs/report.csv'\n",
        "\nGrouped by error: parallelrun failures /out/logs\n",
        "\nTo retry them: parallelrun run job.yaml --retry-failed\n", "shortReturn: Fail",
        "--allow-failures"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  EXPECT_EQ(text.find("To continue"), std::string::npos);
}

TEST(DisplayTest, LossesThatWereAllowedAreNoFailure) {
  json progress = WithLosses();
  progress["losses"]["allowed"] = true;
  EXPECT_FALSE(LostUnallowed(progress));
  std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_EQ(text.find("Finished with losses: "), 0U);
  EXPECT_EQ(text.find("--allow-failures"), std::string::npos);
  progress["losses"]["allowed"] = false;
  Leads leads = LeadsOf("again");
  leads.failures_allowed = true;
  text = Summary(progress, leads, seconds(3), 0);
  EXPECT_EQ(text.find("Finished with losses: "), 0U);
  EXPECT_EQ(text.find("The exit status is 3"), std::string::npos);
}

TEST(DisplayTest, WhatRunLeftOutIsNotRetried) {
  json progress = WithLosses();
  progress["losses"]["items"] = 2;
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_EQ(text.find("--retry-failed"), std::string::npos) << text;
}

TEST(DisplayTest, RowsThatWereLeftOutAreNotRetried) {
  json progress = WithLosses();
  progress["losses"]["skipped"] = 17;
  std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_NE(text.find("\nTo retry them: "), std::string::npos) << text;
  EXPECT_NE(text.find("\nRows that were left out are not retried: "), std::string::npos) << text;
  progress["losses"]["skipped"] = 18;
  text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_EQ(text.find("--retry-failed"), std::string::npos) << text;
}

TEST(DisplayTest, MissingItemsThatAreNoLossAreCounted) {
  json progress = Progress();
  EXPECT_FALSE(LostUnallowed(progress));
  progress["items"]["withoutElement"] = 5;
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_NE(text.find("610 succeeded, 20 failed, 5 without an element\n"), std::string::npos);
}

TEST(DisplayTest, WhatFailedIsNamed) {
  json progress = Progress();
  progress["state"] = "Failed";
  progress["verdict"] = {{"reason", "ErrorThresholdExceeded"}, {"message", "20 items have failed"}};
  progress["firstFailed"] = {"/in/a\x1b.png"};
  progress["errors"][0]["item"] = "/in/a\x1b.png and 9 more";
  std::string text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  for (const char* line :
       {"first in mini-batch 7 (/in/a\\x1b.png and 9 more), node 0, process001; see /out/logs/user",
        "\nFailed, to begin with:\n  /in/a\\x1b.png\nTo see them: less '/out/my "
        "logs/report.csv'\nGrouped by error: parallelrun failures /out/logs\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  Leads gone = LeadsOf("again");
  gone.is_there = [](const std::string&) { return false; };
  text = Summary(progress, gone, seconds(3), 0);
  EXPECT_EQ(text.find("see "), std::string::npos) << text;
  progress["errors"][0]["log"] = "";
  text = Summary(progress, LeadsOf("again"), seconds(3), 0);
  EXPECT_EQ(text.find("; see "), std::string::npos) << text;
}

TEST(QuickJobTest, FieldsAreWhatWasTyped) {
  QuickJob quick;
  quick.script = "score.py";
  quick.input.sources = {{"/a", "", ""}, {"/b", "", ""}};
  EXPECT_EQ(TypedAs(quick, "spec.miniBatchSize"), "--mini-batch-size");
  EXPECT_EQ(TypedAs(quick, "spec.processCountPerNode"), "--processes");
  EXPECT_EQ(TypedAs(quick, "spec.inputs[1].files.pattern"), "--pattern");
  EXPECT_EQ(TypedAs(quick, "spec.inputs[1].files"), "--input");
  EXPECT_EQ(TypedAs(quick, "spec.volumes[1].hostPath"), "--input");
  EXPECT_EQ(TypedAs(quick, "spec.volumes[2].hostPath"), "--output");
  EXPECT_EQ(TypedAs(quick, "spec.entryScript"), "score.py");
  EXPECT_EQ(TypedAs(quick, "spec.errorThreshold"), "");
}

TEST(QuickJobTest, NamesAreMadeValid) {
  EXPECT_EQ(api::JobNameOf("score.py"), "score");
  EXPECT_EQ(api::JobNameOf("/x/My_Script.v2.py"), "my-script-v2");
  EXPECT_EQ(api::JobNameOf("1_up.py"), "job-up");
  EXPECT_EQ(api::JobNameOf("--.py"), "job-run");
  EXPECT_EQ(api::JobNameOf(std::string(50, 'a') + ".py").size(), 40u);
}

TEST(QuickJobTest, TheJobFileIsOneThatThisProgramReads) {
  QuickJob quick;
  quick.script = "my script.py";
  const std::string folder = "/data/with: odd 'name\"";
  quick.input.sources = {{folder, "", "**/*.png"}, {"/more", "a: b.txt", ""}};
  quick.output.folder = "/out";
  quick.mini_batch_size = "5";
  quick.arguments = {"--model", "a b", "--flag=#1"};
  quick.processes = 3;
  const api::ParsedJob parsed = api::ReadJob(QuickJobYaml(quick, ""), {}, api::Target::kLocal);
  for (const api::Problem& problem : parsed.problems)
    ADD_FAILURE() << api::FormatProblem(problem, "quick");
  ASSERT_TRUE(parsed.ok());
  const api::JobSpec& spec = parsed.job.spec;
  EXPECT_EQ(spec.entry_script, "my script.py");
  EXPECT_EQ(spec.volumes[0].source["path"], folder);
  EXPECT_EQ(spec.inputs[0].pattern, "**/*.png");
  EXPECT_EQ(spec.inputs[1].from, (api::VolumePath{"input-2", "a: b.txt"}));
  EXPECT_EQ(spec.arguments, quick.arguments);
  EXPECT_EQ(spec.mini_batch_size, 5u);
  EXPECT_EQ(spec.process_count_per_node, 3);
  EXPECT_EQ(spec.inputs[1].allow_empty, api::AllowEmpty::kNever);
  quick.allow_empty = "Missing";
  const api::ParsedJob may = api::ReadJob(QuickJobYaml(quick, ""), {}, api::Target::kLocal);
  ASSERT_TRUE(may.ok());
  for (const api::Input& input : may.job.spec.inputs) {
    EXPECT_EQ(input.allow_empty, api::AllowEmpty::kMissing);
  }
}

// No YAML file may hold a delete character: the words of the command line were said to be "a
// control character in the file".
TEST(QuickJobTest, WordsMayHoldWhatYamlFilesMayNot) {
  const std::string odd = "a\x7F\x01\t\u0085\u2028\uFEFFb";
  QuickJob quick;
  quick.script = "score.py";
  quick.input.sources = {{"/in/" + odd, "", "*" + odd}};
  quick.output.folder = "/out" + odd;
  quick.arguments = {odd};
  const api::ParsedJob parsed = api::ReadJob(QuickJobYaml(quick, ""), {}, api::Target::kLocal);
  for (const api::Problem& problem : parsed.problems)
    ADD_FAILURE() << api::FormatProblem(problem, "quick");
  EXPECT_EQ(parsed.job.spec.arguments, quick.arguments);
  EXPECT_EQ(parsed.job.spec.inputs[0].pattern, "*" + odd);
  EXPECT_EQ(parsed.job.spec.volumes[0].source["path"], "/in/" + odd);
}

TEST(QuickJobTest, AFileHasItsFormatAndItsLogsAndStateBesideIt) {
  QuickJob quick;
  quick.script = "score.py";
  quick.input.sources = {{"/data", "", ""}};
  quick.output = *LookAtOutput("/out/my scores.csv");
  const api::ParsedJob parsed = api::ReadJob(QuickJobYaml(quick, ""), {}, api::Target::kLocal);
  for (const api::Problem& problem : parsed.problems)
    ADD_FAILURE() << api::FormatProblem(problem, "quick");
  const api::JobSpec& spec = parsed.job.spec;
  EXPECT_EQ(spec.volumes[1].source["path"], "/out");
  EXPECT_EQ(spec.output.file_name, "my scores.csv");
  EXPECT_EQ(spec.output.format, api::OutputFormat::kCsv);
  EXPECT_EQ(spec.logs.to, (api::VolumePath{"output", "my scores.csv.run/logs"}));
  EXPECT_EQ(spec.state.in, (api::VolumePath{"output", "my scores.csv.run/state"}));
}

// As init writes it: for a cluster too, where no folder of this machine is.
TEST(QuickJobTest, BucketsAloneNeedNoVolume) {
  QuickJob quick;
  quick.script = "score.py";
  quick.input.sources = {{"s3://photos/2026", "", "", true}};
  quick.output.url = "s3://results";
  quick.output.file = "scores.txt";
  const std::string text = QuickJobYaml(quick, "");
  EXPECT_EQ(text.find("volume"), std::string::npos) << text;
  EXPECT_EQ(text.find("state"), std::string::npos) << text;
  const api::ParsedJob parsed = api::ReadJob(text, {}, api::Target::kLocal);
  for (const api::Problem& problem : parsed.problems)
    ADD_FAILURE() << api::FormatProblem(problem, "quick");
  EXPECT_EQ(parsed.job.spec.logs.to, (api::VolumePath{api::kStateVolume, "logs"}));

  quick.output.folder = "/kept";
  const api::JobSpec spec = api::ReadJob(QuickJobYaml(quick, ""), {}, api::Target::kLocal).job.spec;
  EXPECT_EQ(spec.volumes.front().source["path"], "/kept");
  EXPECT_EQ(spec.state.in, (api::VolumePath{"run", "state"}));
}

TEST(QuickOutputTest, TheSuffixSaysWhatIsWritten) {
  const auto format_of = [](const std::string& word) { return LookAtOutput(word)->format; };
  EXPECT_EQ(format_of("a.csv"), api::OutputFormat::kCsv);
  EXPECT_EQ(format_of("A.CSV"), api::OutputFormat::kCsv);
  EXPECT_EQ(format_of("b/a.jsonl"), api::OutputFormat::kJsonl);
  EXPECT_EQ(format_of("a.Parquet"), api::OutputFormat::kParquet);
  EXPECT_EQ(format_of("a.csv.txt"), api::OutputFormat::kText);
  EXPECT_EQ(LookAtOutput("b/a.txt")->file, "a.txt");
  EXPECT_EQ(LookAtOutput("b/a.txt")->folder, "b");
  EXPECT_EQ(LookAtOutput("a.txt")->folder, ".");
  EXPECT_EQ(LookAtOutput("/a.txt")->folder, "/");
}

TEST(QuickOutputTest, AnythingElseIsAFolder) {
  for (const std::string word : {"out", "out/v1.2", "a.csv/", ".csv", "/", ".", "..", "/proc"}) {
    const auto output = LookAtOutput(word);
    ASSERT_TRUE(output.ok()) << word;
    EXPECT_EQ(output->file, "") << word;
    EXPECT_EQ(output->folder, word);
  }
}

TEST(QuickOutputTest, AFormatThatIsNotWrittenIsNoFolder) {
  const auto output = LookAtOutput("scores.Feather");
  ASSERT_FALSE(output.ok());
  EXPECT_NE(output.error().message.find("ends in .csv, .jsonl, .parquet or .txt, or a folder, as "
                                        "scores.Feather/"),
            std::string::npos);
}

// Without quotes it would be a boolean, and no name.
TEST(QuickJobTest, AScriptMayBeNamedAsABoolean) {
  QuickJob quick;
  quick.script = "yes.py";
  quick.input.sources = {{"/data", "", ""}};
  quick.output.folder = "/out";
  const api::ParsedJob parsed = api::ReadJob(QuickJobYaml(quick, ""), {}, api::Target::kLocal);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.job.metadata.name, "yes");
}

TEST(QuickJobTest, EveryFormatIsOneThatThisProgramReads) {
  QuickJob quick;
  quick.script = "score.py";
  quick.output.folder = "/out";
  quick.input.sources = {{"/data", "rows", ""}};
  for (const auto& [kind, format] :
       {std::pair{api::InputKind::kTabular, api::TabularFormat::kCsv},
        std::pair{api::InputKind::kTabular, api::TabularFormat::kTsv},
        std::pair{api::InputKind::kTabular, api::TabularFormat::kParquet},
        std::pair{api::InputKind::kJsonLines, api::TabularFormat::kCsv}}) {
    quick.input.kind = kind;
    quick.input.format = format;
    const api::ParsedJob parsed = api::ReadJob(QuickJobYaml(quick, ""), {}, api::Target::kLocal);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed.job.spec.inputs[0].kind, kind);
    if (kind == api::InputKind::kTabular) {
      EXPECT_EQ(parsed.job.spec.inputs[0].tabular.format, format);
    }
  }
}

}  // namespace
}  // namespace parallelrun::cli
