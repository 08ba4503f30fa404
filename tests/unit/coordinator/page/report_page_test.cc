#include "coordinator/page/report_page.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/mac.h"
#include "coordinator/page/assets.h"
#include "coordinator/page/page_data.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr char kHostileName[] =
    "</script><script>alert(1)</script><!-- \" ' & \xe2\x80\xa8 \xe2\x80\xae \x01 \xff .txt";

size_t CountOf(const std::string& text, std::string_view word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(ReportPage, WhatIsShownEndsNoElement) {
  const std::string page = ReportPage({{"name", kHostileName}});
  EXPECT_EQ(CountOf(page, "</script"), 2U);
  EXPECT_EQ(CountOf(page, "<!--"), 0U);
  EXPECT_EQ(CountOf(page, "alert(1)<"), 0U);
}

TEST(ReportPage, TheDataIsTheSameAgain) {
  const json data = {{"a", "</script>&\"'\xc3\xa4\xe2\x80\xa8"}, {"b", {1, 2.5, nullptr, true}}};
  const std::string text = JsonForHtml(data);
  EXPECT_EQ(json::parse(text), data);
  for (const char c : text) EXPECT_TRUE(c >= ' ' && c < 127 && c != '<' && c != '>' && c != '&');
}

TEST(ReportPage, OnlyItsOwnScriptAndStyleAreAllowedByTheirHashes) {
  // Of the empty text, as `printf '' | openssl dgst -sha256 -binary | base64` says.
  EXPECT_EQ(HashSource(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
  const std::string page = ReportPage({});
  EXPECT_THAT(page, HasSubstr("default-src 'none'; script-src " + HashSource(kPageScript) +
                              "; style-src " + HashSource(kPageStyle) + "; base-uri 'none'"));
  EXPECT_THAT(page, HasSubstr("<script>" + std::string(kPageScript) + "</script>"));
  EXPECT_THAT(page, HasSubstr("<style>" + std::string(kPageStyle) + "</style>"));
}

TEST(ReportPage, TheAssetsAskForNothingAndAreSmall) {
  const std::string assets = std::string(kPageScript) + std::string(kPageStyle);
  for (const char* word :
       {"</script", "</style", "<!--", "innerHTML", "eval(", "@import", "url("}) {
    EXPECT_THAT(assets, Not(HasSubstr(word)));
  }
  // A name of a namespace, which nothing is fetched from.
  EXPECT_EQ(CountOf(assets, "://"), CountOf(assets, "http://www.w3.org/2000/svg"));
  EXPECT_LT(assets.size(), 150'000U);
}

std::vector<std::string> SettingsLines(const std::string& job) {
  std::vector<std::string> lines;
  for (const SettingShown& one : SettingsShown(job, 100)) {
    lines.push_back(one.path + "=" + one.value + (one.is_default ? " default" : ""));
  }
  return lines;
}

TEST(SettingsShown, EveryValueWithItsPathAndWhetherItIsTheDefault) {
  EXPECT_THAT(
      SettingsLines(R"({"spec":{"runMaxTry":3,"miniBatchSize":"7","inputs":[{"name":"a"}]}})"),
      ElementsAre("spec.inputs[0].name=a", "spec.miniBatchSize=7", "spec.runMaxTry=3 default"));
}

TEST(SettingsShown, ValuesOfVariablesAreNotShown) {
  for (const std::string& line :
       SettingsLines(R"({"spec":{"environment":{"env":[{"name":"TOKEN","value":"s3cret"}]},
                   "podTemplate":{"spec":{"containers":[{"args":["s3cret"]}]}}}})")) {
    EXPECT_THAT(line, Not(HasSubstr("s3cret")));
  }
}

TEST(SettingsShown, WhatIsNoJobHasNone) {
  EXPECT_TRUE(SettingsShown("", 100).empty());
  EXPECT_TRUE(SettingsShown("[]", 100).empty());
  EXPECT_TRUE(SettingsShown("{}", 100).empty());
}

TEST(SettingsShown, AreBounded) {
  json job;
  for (int i = 0; i < 1000; ++i) job["spec"]["arguments"].push_back("x");
  EXPECT_EQ(SettingsShown(job.dump(), 100).size(), 100U);
}

}  // namespace
}  // namespace parallelrun::coordinator
