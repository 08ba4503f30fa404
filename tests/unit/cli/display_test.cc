#include "cli/run/display.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/job_name.h"
#include "api/parse.h"
#include "cli/run/quick_job.h"

namespace parallelrun {
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
  return {"/out/logs", "/out/my logs/report.csv", resume,
          "parallelrun run job.yaml --retry-failed"};
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

TEST(DisplayTest, TheSummaryNamesTheErrorsAndHowToContinue) {
  const std::string text =
      Summary(Progress(), LeadsOf("parallelrun run job.yaml --resume"), seconds(3));
  EXPECT_NE(text.find("3 x Exception: no\\x1b[31m such file"), std::string::npos) << text;
  EXPECT_NE(text.find("/out/logs/user/error/0/process001.txt"), std::string::npos);
  EXPECT_NE(text.find("To continue: parallelrun run job.yaml --resume"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(DisplayTest, ASuccessDoesNotAskToContinue) {
  json progress = Progress();
  progress["state"] = "Succeeded";
  progress["verdict"] = {{"reason", "Complete"}, {"message", "all 180 mini-batches succeeded"}};
  progress["output"] = {{"path", "/out/x.txt"}, {"rows", 610}, {"bytes", 7000}};
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3));
  EXPECT_EQ(text.find("Succeeded (Complete): all 180 mini-batches succeeded"), 0u);
  EXPECT_NE(text.find("/out/x.txt (610 rows, 7000 bytes)"), std::string::npos);
  EXPECT_EQ(text.find("To continue"), std::string::npos);
}

TEST(DisplayTest, AFailureBeforeTheFirstMiniBatchDoesNotAskToContinue) {
  json progress = Progress();
  progress["state"] = "Failed";
  progress["verdict"] = {{"reason", "InputUnusable"}, {"message", "/ini does not exist"}};
  progress["miniBatches"]["succeeded"] = 0;
  progress["miniBatches"]["failed"] = 0;
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3));
  EXPECT_NE(text.find("Nothing has been done yet: fix it and run again"), std::string::npos)
      << text;
  EXPECT_EQ(text.find("To continue"), std::string::npos);
}

TEST(DisplayTest, LossesAreNamedWithWhatToDo) {
  const json progress = WithLosses();
  EXPECT_TRUE(LostUnallowed(progress));
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3));
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
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3));
  EXPECT_EQ(text.find("Finished with losses: "), 0U);
  EXPECT_EQ(text.find("--allow-failures"), std::string::npos);
}

TEST(DisplayTest, WhatRunLeftOutIsNotRetried) {
  json progress = WithLosses();
  progress["losses"]["items"] = 2;
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3));
  EXPECT_EQ(text.find("--retry-failed"), std::string::npos) << text;
}

TEST(DisplayTest, RowsThatWereLeftOutAreNotRetried) {
  json progress = WithLosses();
  progress["losses"]["skipped"] = 17;
  std::string text = Summary(progress, LeadsOf("again"), seconds(3));
  EXPECT_NE(text.find("\nTo retry them: "), std::string::npos) << text;
  EXPECT_NE(text.find("\nRows that were left out are not retried: "), std::string::npos) << text;
  progress["losses"]["skipped"] = 18;
  text = Summary(progress, LeadsOf("again"), seconds(3));
  EXPECT_EQ(text.find("--retry-failed"), std::string::npos) << text;
}

TEST(DisplayTest, MissingItemsThatAreNoLossAreCounted) {
  json progress = Progress();
  EXPECT_FALSE(LostUnallowed(progress));
  progress["items"]["withoutElement"] = 5;
  const std::string text = Summary(progress, LeadsOf("again"), seconds(3));
  EXPECT_NE(text.find("610 succeeded, 20 failed, 5 without an element\n"), std::string::npos);
}

TEST(DisplayTest, WhatFailedIsNamed) {
  json progress = Progress();
  progress["state"] = "Failed";
  progress["verdict"] = {{"reason", "ErrorThresholdExceeded"}, {"message", "20 items have failed"}};
  progress["firstFailed"] = {"/in/a\x1b.png"};
  progress["errors"][0]["item"] = "/in/a\x1b.png and 9 more";
  std::string text = Summary(progress, LeadsOf("again"), seconds(3));
  for (const char* line :
       {"first in mini-batch 7 (/in/a\\x1b.png and 9 more), node 0, process001; see /out/logs/user",
        "\nFailed, to begin with:\n  /in/a\\x1b.png\nTo see them: less '/out/my "
        "logs/report.csv'\nGrouped by error: parallelrun failures /out/logs\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
  progress["errors"][0]["log"] = "";
  text = Summary(progress, LeadsOf("again"), seconds(3));
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
  EXPECT_EQ(JobNameOf("score.py"), "score");
  EXPECT_EQ(JobNameOf("/x/My_Script.v2.py"), "my-script-v2");
  EXPECT_EQ(JobNameOf("1_up.py"), "job-up");
  EXPECT_EQ(JobNameOf("--.py"), "job-run");
  EXPECT_EQ(JobNameOf(std::string(50, 'a') + ".py").size(), 40u);
}

TEST(QuickJobTest, TheJobFileIsOneThatThisProgramReads) {
  QuickJob quick;
  quick.script = "my script.py";
  const std::string folder = "/data/with: odd 'name\"";
  quick.input.sources = {{folder, "", "**/*.png"}, {"/more", "a: b.txt", ""}};
  quick.output = "/out";
  quick.mini_batch_size = "5";
  quick.arguments = {"--model", "a b", "--flag=#1"};
  quick.processes = 3;
  const ParsedJob parsed = ReadJob(QuickJobYaml(quick, ""), {}, Target::kLocal);
  for (const Problem& problem : parsed.problems) ADD_FAILURE() << FormatProblem(problem, "quick");
  ASSERT_TRUE(parsed.ok());
  const JobSpec& spec = parsed.job.spec;
  EXPECT_EQ(spec.entry_script, "my script.py");
  EXPECT_EQ(spec.volumes[0].source["path"], folder);
  EXPECT_EQ(spec.inputs[0].pattern, "**/*.png");
  EXPECT_EQ(spec.inputs[1].from, (VolumePath{"input-2", "a: b.txt"}));
  EXPECT_EQ(spec.arguments, quick.arguments);
  EXPECT_EQ(spec.mini_batch_size, 5u);
  EXPECT_EQ(spec.process_count_per_node, 3);
}

// Without quotes it would be a boolean, and no name.
TEST(QuickJobTest, AScriptMayBeNamedAsABoolean) {
  QuickJob quick;
  quick.script = "yes.py";
  quick.input.sources = {{"/data", "", ""}};
  quick.output = "/out";
  const ParsedJob parsed = ReadJob(QuickJobYaml(quick, ""), {}, Target::kLocal);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.job.metadata.name, "yes");
}

TEST(QuickJobTest, EveryFormatIsOneThatThisProgramReads) {
  QuickJob quick;
  quick.script = "score.py";
  quick.output = "/out";
  quick.input.sources = {{"/data", "rows", ""}};
  for (const auto& [kind, format] : {std::pair{InputKind::kTabular, TabularFormat::kCsv},
                                     std::pair{InputKind::kTabular, TabularFormat::kTsv},
                                     std::pair{InputKind::kTabular, TabularFormat::kParquet},
                                     std::pair{InputKind::kJsonLines, TabularFormat::kCsv}}) {
    quick.input.kind = kind;
    quick.input.format = format;
    const ParsedJob parsed = ReadJob(QuickJobYaml(quick, ""), {}, Target::kLocal);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(parsed.job.spec.inputs[0].kind, kind);
    if (kind == InputKind::kTabular) {
      EXPECT_EQ(parsed.job.spec.inputs[0].tabular.format, format);
    }
  }
}

}  // namespace
}  // namespace parallelrun
