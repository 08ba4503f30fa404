#include "cli/run/flag_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::cli {
namespace {

using Words = std::vector<std::string>;

TEST(FlagWordsTest, EachWordGetsItsFlag) {
  EXPECT_EQ(EachWithItsFlag({"run", "--volume", "a=/x", "b=/y", "job.yaml"}),
            (Words{"run", "--volume", "a=/x", "--volume", "b=/y", "job.yaml"}));
  EXPECT_EQ(
      EachWithItsFlag({"--volume=a=/x", "b=/y", "--set", "spec.a=1", "metadata.b=2"}),
      (Words{"--volume=a=/x", "--volume", "b=/y", "--set", "spec.a=1", "--set", "metadata.b=2"}));
}

TEST(FlagWordsTest, WhatCannotBeMeantForTheFlagIsLeftAlone) {
  for (const Words& words :
       {Words{"run", "--volume", "a=/x", "jobs/k=v/job.yaml"},
        Words{"run", "--set", "spec.a=1", "b=2"},
        Words{"run", "--volume", "a=/x", "job.yaml", "b=/y"},
        Words{"run", "--volume", "--set", "spec.a=1"}, Words{"run", "job.yaml", "b=/y"}, Words{}}) {
    EXPECT_EQ(EachWithItsFlag(words), words);
  }
}

}  // namespace
}  // namespace parallelrun::cli
