#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace parallelrun {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

std::string Logged(LogFormat format, const std::function<void()>& code) {
  testing::internal::CaptureStderr();
  SetUpLogging(format, LogLevel::kInfo);
  code();
  spdlog::default_logger()->flush();
  return testing::internal::GetCapturedStderr();
}

const LogSubject& Digits() {
  static const LogSubject subject{
      "job", {{"namespace", "default"}, {"name", "digits"}}, "default/digits"};
  return subject;
}

TEST(LogScopeTest, JsonLinesNameTheSubjectAsAnObject) {
  const auto line = nlohmann::json::parse(Logged(LogFormat::kJson, [] {
    const LogScope scope(Digits());
    spdlog::info("two pods");
  }));
  EXPECT_EQ(line["message"], "two pods");
  EXPECT_EQ(line["level"], "INFO");
  EXPECT_EQ(line["job"], (nlohmann::json{{"namespace", "default"}, {"name", "digits"}}));
}

TEST(LogScopeTest, TextLinesBeginWithTheSubject) {
  for (const LogFormat format : {LogFormat::kTerminal, LogFormat::kTree}) {
    EXPECT_THAT(Logged(format,
                       [] {
                         const LogScope scope(Digits());
                         spdlog::info("two pods");
                       }),
                EndsWith("default/digits: two pods\n"));
  }
}

TEST(LogScopeTest, EndsWithItsScopeAndGivesBackTheOuterOne) {
  const std::string text = Logged(LogFormat::kTerminal, [] {
    const LogScope scope(Digits());
    {
      const LogSubject other{"job", {}, "default/wine"};
      const LogScope inner(other);
    }
    spdlog::info("outer");
  });
  EXPECT_THAT(text, HasSubstr("default/digits: outer"));
  EXPECT_THAT(Logged(LogFormat::kTerminal, [] { spdlog::info("none"); }), Not(HasSubstr("digits")));
}

}  // namespace
}  // namespace parallelrun
