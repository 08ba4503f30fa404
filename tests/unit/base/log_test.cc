#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/fd.h"

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

// As where a container's log is not taken any more, or lies on a volume that hangs.
TEST(LogInBackgroundTest, AStderrThatNobodyReadsHoldsUpNobody) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Fd reads(ends[0]);
  const Fd writes(ends[1]);
  const Fd before(dup(STDERR_FILENO));
  SetUpLogging(LogFormat::kTerminal, LogLevel::kInfo);
  LogInBackground();
  dup2(writes.get(), STDERR_FILENO);
  const std::string line(1000, 'x');
  for (int i = 0; i < 10'000; ++i) spdlog::info(line);  // more than a pipe and the queue hold
  spdlog::info("the last line");
  std::string got;
  std::array<char, 65536> buffer{};
  while (!got.ends_with("the last line\n")) {
    const ssize_t n = read(reads.get(), buffer.data(), buffer.size());
    ASSERT_GT(n, 0);
    got.append(buffer.data(), static_cast<size_t>(n));
  }
  EXPECT_TRUE(EndBackgroundLog(std::chrono::hours(1)));
  spdlog::info("in the foreground");
  dup2(before.get(), STDERR_FILENO);
  EXPECT_GT(read(reads.get(), buffer.data(), buffer.size()), 0);
  EXPECT_THAT(got, HasSubstr("lines of this log were dropped"));
}

}  // namespace
}  // namespace parallelrun
