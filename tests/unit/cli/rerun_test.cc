#include "cli/runs/rerun.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::cli {
namespace {

using ::testing::ElementsAre;
using Words = std::vector<std::string>;

TEST(Rerun, FlagsTakeThePlaceOfTheSameFlags) {
  const Words command = {"parallelrun", "run", "score.py", "--input",  "a", "b",
                         "--output",    "out", "--",       "--output", "x"};
  EXPECT_EQ(RerunWords(command, {}), command);
  EXPECT_THAT(RerunWords(command, {"--output", "out2", "--processes=3"}),
              ElementsAre("parallelrun", "run", "score.py", "--input", "a", "b", "--output", "out2",
                          "--processes=3", "--", "--output", "x"));
  EXPECT_THAT(RerunWords(command, {"--input", "c"}),
              ElementsAre("parallelrun", "run", "score.py", "--output", "out", "--input", "c", "--",
                          "--output", "x"));
}

TEST(Rerun, ArgumentsTakeThePlaceOfTheScripts) {
  EXPECT_THAT(RerunWords({"parallelrun", "run", "a.py", "--", "x", "y"}, {}, {"z"}),
              ElementsAre("parallelrun", "run", "a.py", "--", "z"));
  EXPECT_THAT(RerunWords({"parallelrun", "run", "a.py"}, {"--nodes", "2"}, {"z"}),
              ElementsAre("parallelrun", "run", "a.py", "--nodes", "2", "--", "z"));
}

TEST(Rerun, SettingsAreAdded) {
  EXPECT_THAT(
      RerunWords({"parallelrun", "run", "job.yaml", "--set", "spec.a=1"}, {"--set", "spec.b=2"}),
      ElementsAre("parallelrun", "run", "job.yaml", "--set", "spec.a=1", "--set", "spec.b=2"));
}

TEST(Rerun, HowItStartedIsLeftOut) {
  EXPECT_THAT(RerunWords({"parallelrun", "run", "--resume", "job.yaml", "--overwrite"}, {}),
              ElementsAre("parallelrun", "run", "job.yaml"));
  EXPECT_THAT(
      RerunWords({"parallelrun", "run", "--allow-failures", "job.yaml"}, {"--allow-failures"}),
      ElementsAre("parallelrun", "run", "job.yaml", "--allow-failures"));
  EXPECT_THAT(RerunWords({"parallelrun", "run", "job.yaml", "--retry-failed"}, {"--overwrite"}),
              ElementsAre("parallelrun", "run", "job.yaml", "--overwrite"));
}

TEST(Rerun, OneChoiceAmongTheItemsReplacesAnother) {
  EXPECT_THAT(RerunWords({"parallelrun", "run", "job.yaml", "--only", "a", "b"}, {"--limit", "3"}),
              ElementsAre("parallelrun", "run", "job.yaml", "--limit", "3"));
}

}  // namespace
}  // namespace parallelrun::cli
