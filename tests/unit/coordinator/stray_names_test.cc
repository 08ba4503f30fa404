#include "coordinator/stray_names.h"

#include <gmock/gmock.h>

namespace parallelrun::coordinator {
namespace {

using ::testing::HasSubstr;

TEST(StrayNames, TheFirstOfAllNodesAreNamed) {
  StrayNames stray;
  EXPECT_EQ(stray.Words(), "");
  stray.Count(0);
  EXPECT_EQ(stray.Words(), "");
  stray.Count(1);
  stray.Add("c.csv");
  EXPECT_THAT(stray.Words(), HasSubstr("the script wrote 1 file into its working folder, a copy of "
                                       "the code that goes with the node: c.csv. "));
  stray.Count(4);
  for (const char* name : {"b.csv", "d.csv", "a.csv"}) stray.Add(name);
  EXPECT_THAT(stray.Words(), HasSubstr("5 files"));
  EXPECT_THAT(stray.Words(), HasSubstr(": a.csv, b.csv, c.csv and 2 more. "));
  EXPECT_THAT(stray.Words(), HasSubstr("./outputs, or the path that $(output)"));
  EXPECT_THAT(stray.Words(false), HasSubstr("into the output folder: the path that $(output)"));
}

TEST(StrayNames, WhatANodeSaysIsBounded) {
  StrayNames stray;
  stray.Count(UINT64_MAX);
  stray.Count(UINT64_MAX);
  for (int i = 0; i < 1000; ++i) stray.Add(std::string(1 << 16, 'x') + std::to_string(i) + '\n');
  EXPECT_THAT(stray.Words(), HasSubstr("2000000 files"));
  EXPECT_LT(stray.Words().size(), 1024U);
  EXPECT_EQ(stray.Words().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace parallelrun::coordinator
