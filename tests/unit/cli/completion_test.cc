#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::cli {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

const std::vector<CommandWords> kCommands = {
    {"run",
     {{"--help", false},
      {"--volume", true},
      {"--set", true},
      {"--format", true},
      {"--nodes", true},
      {"--resume", false}}},
    {"explain", {{"--help", false}}},
    {"completion", {}},
    {"help", {}},
};

Completion At(const std::vector<std::string>& words) { return Complete(kCommands, words); }

TEST(Completion, CommandsAndTheirFlags) {
  EXPECT_THAT(At({""}).words, ElementsAre("run", "explain", "completion", "help"));
  EXPECT_THAT(At({"e"}).words, ElementsAre("explain"));
  EXPECT_THAT(At({"run", "--"}).words, Contains("--volume"));
  EXPECT_THAT(At({"run", "--re"}).words, ElementsAre("--resume"));
  EXPECT_THAT(At({"explain", "--re"}).words, IsEmpty());
  EXPECT_THAT(At({"help", "ru"}).words, ElementsAre("run"));
  EXPECT_THAT(At({"completion", ""}).words, ElementsAre("bash", "fish", "zsh"));
}

TEST(Completion, FieldsOfAJob) {
  EXPECT_THAT(At({"explain", "spec.errorT"}).words, ElementsAre("spec.errorThreshold"));
  const std::vector<std::string> tables = At({"explain", "spec.inputs.tabular."}).words;
  EXPECT_THAT(tables, Contains("spec.inputs.tabular.format"));
  EXPECT_THAT(tables, Each(StartsWith("spec.inputs.tabular.")));
  EXPECT_THAT(At({"run", "job.yaml", "--set", "spec.inputs[0].tabular.fo"}).words,
              ElementsAre("spec.inputs[0].tabular.format="));
  EXPECT_THAT(At({"run", "--set=spec.errorT"}).words, ElementsAre("--set=spec.errorThreshold="));
  // bash makes three words of it.
  EXPECT_THAT(At({"run", "--set", "=", "spec.errorT"}).words, ElementsAre("spec.errorThreshold="));
}

TEST(Completion, ValuesOfFlags) {
  EXPECT_THAT(At({"run", "--format", "p"}).words, ElementsAre("parquet"));
  EXPECT_THAT(At({"run", "--format=j"}).words, ElementsAre("--format=jsonl"));
  for (const char* flag : {"--nodes", "--format"}) EXPECT_FALSE(At({"run", flag, "x"}).files);
  EXPECT_TRUE(At({"run", "--volume", ""}).files);
}

TEST(Completion, Files) {
  EXPECT_TRUE(At({"run", ""}).files);
  EXPECT_TRUE(At({"run", "--resume", "jo"}).files);
  // Behind "--" all words are the script's.
  EXPECT_TRUE(At({"run", "score.py", "--", "--re"}).files);
  EXPECT_THAT(At({"run", "score.py", "--", "--re"}).words, IsEmpty());
  EXPECT_EQ(CompletionText(At({"run", ""})), ":files\n");
  EXPECT_EQ(CompletionText(At({"run", "--re"})), "--resume\n");
}

TEST(Completion, WhatNobodyKnowsHasNoAnswer) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"fly", ""}, {"run", "--fly=x"}, {"run", "--resume="}}) {
    EXPECT_EQ(CompletionText(At(words)), "");
  }
}

TEST(Completion, Scripts) {
  for (const char* shell : {"bash", "fish", "zsh"}) {
    EXPECT_TRUE(CompletionScript(shell).ok()) << shell;
  }
  const Result<std::string> other = CompletionScript("tcsh");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "tcsh is none of bash, fish or zsh");
}

}  // namespace
}  // namespace parallelrun::cli
