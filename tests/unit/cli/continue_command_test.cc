#include "cli/run/continue_command.h"

#include <gtest/gtest.h>

namespace parallelrun::cli {
namespace {

std::string Continue(std::vector<std::string> words, const std::string& flag = "--resume") {
  words.insert(words.begin(), {"parallelrun", "run"});
  return ContinueCommand(words, {"--input", "--output", "--set"}, flag);
}

TEST(ContinueCommand, ReplacesHowTheRunStarted) {
  EXPECT_EQ(Continue({"job.yaml"}), "parallelrun run job.yaml --resume");
  EXPECT_EQ(Continue({"--overwrite", "job.yaml"}), "parallelrun run job.yaml --resume");
  EXPECT_EQ(Continue({"job.yaml", "--retry-failed=true", "--nodes", "2"}),
            "parallelrun run job.yaml --nodes 2 --resume");
  EXPECT_EQ(Continue({"job.yaml", "--resume"}), "parallelrun run job.yaml --resume");
}

TEST(ContinueCommand, RetriesWhatFailed) {
  EXPECT_EQ(Continue({"job.yaml", "--resume", "--allow-failures"}, "--retry-failed"),
            "parallelrun run job.yaml --allow-failures --retry-failed");
}

TEST(ContinueCommand, LeavesTheScriptsArgumentsAlone) {
  EXPECT_EQ(Continue({"score.py", "--input", "a", "--overwrite", "--", "--overwrite", "yes", "--",
                      "--resume", "--retry-failed"}),
            "parallelrun run score.py --input a --resume -- --overwrite yes -- --resume "
            "--retry-failed");
}

TEST(ContinueCommand, LeavesValuesAlone) {
  EXPECT_EQ(Continue({"job.yaml", "--set", "spec.arguments[0]=a -- b"}),
            "parallelrun run job.yaml --set 'spec.arguments[0]=a -- b' --resume");
  EXPECT_EQ(
      Continue({"score.py", "--output", "--resume", "--input", "--", "--overwrite", "--", "x"}),
      "parallelrun run score.py --output --resume --input -- --resume -- x");
}

TEST(ContinueCommand, QuotesForAShell) {
  EXPECT_EQ(Continue({"it's.yaml", "--set", "", "--", "a b", "$x"}),
            "parallelrun run 'it'\\''s.yaml' --set '' --resume -- 'a b' '$x'");
}

}  // namespace
}  // namespace parallelrun::cli
