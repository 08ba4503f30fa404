#include "job/side_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parallelrun::job {
namespace {

SideInput ModelInput() {
  return {"model",
          "models",
          "s3://models/digits",
          "s3://models/digits",
          false,
          {{"a/weights.bin", 5, std::string("\"\x00\xff", 3)}, {"config.json", 0, ""}}};
}

TEST(SideInputs, TheirJsonHoldsAllOfThem) {
  SideInput one{"words", "models", "s3://models/w.txt", "s3://models", true, {{"w.txt", 7, "e"}}};
  const std::vector<SideInput> both = {ModelInput(), one};
  const Result<std::vector<SideInput>> read = ParseSideInputs(SideInputsJson(both));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, both);
  EXPECT_EQ(ModelInput().bytes(), 5U);
  EXPECT_TRUE(ParseSideInputs(nlohmann::json::array())->empty());
}

TEST(SideInputs, WhatIsNoneIsRefused) {
  const nlohmann::json good = SideInputsJson({ModelInput()});
  const nlohmann::json::json_pointer objects("/0/objects");
  for (const char* bad : {R"([])", R"([["a", 1]])", R"([["a", -1, "00"]])", R"([["a", 1, "0"]])",
                          R"([["a", 1, "0x"]])", R"([[1, 1, "00"]])", R"({"a": 1})"}) {
    nlohmann::json list = good;
    list[objects] = nlohmann::json::parse(bad);
    EXPECT_FALSE(ParseSideInputs(list).ok()) << bad;
  }
  for (const char* key : {"name", "store", "url", "root", "oneObject", "objects"}) {
    nlohmann::json list = good;
    list[0].erase(key);
    EXPECT_FALSE(ParseSideInputs(list).ok()) << key;
  }
}

// In an argument one name must not be found in another one.
TEST(SideInputs, TheMarkOfOneIsNotInThatOfAnother) {
  EXPECT_EQ(SideInputMark("model-2").find(SideInputMark("model")), std::string::npos);
}

TEST(SideInputs, TheCallForUrlsAndItsAnswerAreReadAsTheyAreWritten) {
  const Result<SideUrlsWanted> wanted = ParseSideUrlsWanted(SideUrlsWantedText({"model", 500}));
  ASSERT_TRUE(wanted.ok()) << wanted.error().message;
  EXPECT_EQ(wanted->side_input, "model");
  EXPECT_EQ(wanted->first, 500u);
  for (const char* bad : {"", "[]", "{}", R"({"sideInput": "model", "first": -1})",
                          R"({"sideInput": "model", "first": 10001})", R"({"first": 1})"}) {
    EXPECT_EQ(ParseSideUrlsWanted(bad).error().code, Code::kInvalid) << bad;
  }
  const Result<SideUrls> urls = ParseSideUrls(SideUrlsText({1800, {"https://s3/b/k?X-Amz-A=1"}}));
  ASSERT_TRUE(urls.ok()) << urls.error().message;
  EXPECT_EQ(urls->seconds, 1800u);
  EXPECT_EQ(urls->urls, std::vector<std::string>{"https://s3/b/k?X-Amz-A=1"});
}

TEST(SideInputs, AnAnswerWithUrlsThatIsMalformedIsRefusedInWordsWithoutThem) {
  for (const char* bad :
       {R"({"seconds": 1, "urls": ["https://s3/b/k?X-Amz-A=1")", R"(["https://s3/b/k?X-Amz-A=1"])",
        R"({"seconds": "X-Amz-A", "urls": ["https://s3/b/k?X-Amz-A=1"]})",
        R"({"seconds": 1, "urls": "https://s3/b/k?X-Amz-A=1"})",
        R"({"seconds": 1, "urls": ["https://s3/b/k?X-Amz-A=1", 2]})",
        R"({"seconds": 1, "urls": []})"}) {
    const Result<SideUrls> urls = ParseSideUrls(bad);
    ASSERT_FALSE(urls.ok()) << bad;
    EXPECT_EQ(urls.error().code, Code::kInvalid) << bad;
    EXPECT_THAT(urls.error().message, testing::Not(testing::HasSubstr("X-Amz"))) << bad;
  }
}

}  // namespace
}  // namespace parallelrun::job
