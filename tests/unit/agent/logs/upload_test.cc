// The upload of logs: whole, within bounds, and again where a file changed.
#include "agent/logs/log_upload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "agent/logs/log_trim.h"
#include "agent/logs/log_version.h"
#include "base/log.h"
#include "base/thread.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/agent/logs/log_server.h"

namespace parallelrun::agent {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

namespace fs = std::filesystem;

TEST(AgentLogUpload, Targets) {
  EXPECT_EQ(LogTarget("user/stdout/3/process000.stdout.txt", 3),
            "user/stdout/3/process000.stdout.txt");
  EXPECT_EQ(LogTarget("perf/3/x/y", 3), "perf/3/x/y");
  EXPECT_EQ(LogTarget("mine/a b.txt", 3), "user/files/3/mine/a b.txt");
  EXPECT_EQ(LogTarget("user/stdout/4/x", 3), "user/files/3/user/stdout/4/x");
  EXPECT_EQ(LogTarget("a/b/c/d/e/f", 3), std::nullopt);
  EXPECT_EQ(LogTarget(std::string(256, 'x'), 3), std::nullopt);
}

TEST(AgentLogUpload, SendsWhatGrowsAndFollowsNoLinks) {
  const TempFolder t;
  LogServer server;
  server.unavailable = 2;
  const std::string big = Counting(5 * kMiB / 2);
  t.Write("secret.txt", "secret");
  t.Write("logs/user/stdout/0/process000.stdout.txt", "one\n");
  {
    LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0, server.Client(), milliseconds(5));
    t.Write("logs/mine/\xC3\xA4 b%.txt", big);
    t.Write("logs/forbidden.txt", "x");
    fs::create_symlink(t.path("secret.txt"), t.path("logs/link.txt"));
    fs::create_symlink(t.path(), t.path("logs/folder"));
    mkfifo(t.path("logs/pipe").c_str(), 0600);
    std::ofstream(t.path("logs/user/stdout/0/process000.stdout.txt"), std::ios::app) << "two\n";
    EXPECT_TRUE(uploader.Finish(seconds(60)));
  }
  EXPECT_EQ(server.files["user/stdout/0/process000.stdout.txt"], "one\ntwo\n");
  EXPECT_EQ(server.files["user/files/0/mine/\xC3\xA4 b%.txt"], big);
  EXPECT_EQ(server.files.size(), 2U);
  EXPECT_EQ(server.largest, size_t{1} << 20);
}

TEST(AgentLogUpload, AFileAboveTheLimitIsTriedAgainToo) {
  const TempFolder t;
  LogServer server;
  server.unavailable = 1;
  t.Write("logs/forbidden.txt", "x");
  fs::resize_file(t.path("logs/forbidden.txt"), (uint64_t{1} << 30) + 1);
  {
    LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0, server.Client(), milliseconds(5));
    EXPECT_TRUE(uploader.Finish(seconds(60)));
  }
  EXPECT_EQ(server.requests, 2);  // 503, 403
}

TEST(AgentLogUpload, GivesUpAtTheLimit) {
  const TempFolder t;
  LogServer server;
  server.unavailable = 1 << 30;
  t.Write("logs/x", "x");
  LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0, server.Client(), milliseconds(5));
  EXPECT_FALSE(uploader.Finish(milliseconds(100)));
}

TEST(AgentLogUpload, ItsEndDoesNotWaitForWhatHangs) {
  const TempFolder t;
  t.Write("logs/x", "x");
  auto hangs = std::make_shared<std::promise<void>>();
  auto released = std::make_shared<std::promise<void>>();
  HttpClientOptions options;
  options.base_url = "http://127.0.0.1:1";
  options.token = [hangs, released] {
    hangs->set_value();
    released->get_future().wait();
    return std::string();
  };
  const std::weak_ptr<std::promise<void>> kept = released;
  {
    LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0,
                         std::move(*HttpClient::Make(std::move(options))), milliseconds(1));
    hangs->get_future().wait();
    EXPECT_FALSE(uploader.Finish(milliseconds(1)));
  }
  EXPECT_TRUE(Thread::AnyLeft());
  std::exchange(released, nullptr)->set_value();
  while (!kept.expired()) std::this_thread::yield();  // the thread has ended, with its client
}

constexpr char kStdout[] = "user/stdout/0/process000.stdout.txt";

// Each of the operations of a round.
TEST(AgentLogUpload, AFaultOfTheDiskLosesNothing) {
  const std::string table = Counting(100'000);
  for (uint64_t operation = 1; operation <= 20; ++operation) {
    FaultFiles disk;
    disk.Put("/work/logs/table.csv", table);
    disk.Put(std::string("/work/logs/") + kStdout, "one\n");
    disk.FailOperation(operation, {Code::kInternal, "EIO"});
    LogServer server;
    {
      LogUploader uploader(std::make_shared<FaultFiles>(disk), "/work/logs", 0, server.Client(),
                           milliseconds(3));
      EXPECT_TRUE(uploader.Finish(seconds(60)));
    }
    EXPECT_TRUE(server.files["user/files/0/table.csv"] == table) << operation;
    EXPECT_EQ(server.files[kStdout], "one\n") << operation;
  }
}

TEST(AgentLogUpload, WhatCannotBeReadIsTold) {
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  testing::internal::CaptureStderr();
  SetUpLogging(LogFormat::kTree, LogLevel::kInfo);
  for (const Error& error :
       {Error{Code::kInternal, "open x: EIO"}, {Code::kPermission, "open y"}}) {
    FaultFiles disk;
    disk.Put("/work/logs/table.csv", "text");
    disk.FailOperation(5, error);  // the opening of the file
    LogServer server;
    LogUploader uploader(std::make_shared<FaultFiles>(disk), "/work/logs", 0, server.Client(),
                         milliseconds(3));
    EXPECT_TRUE(uploader.Finish(seconds(60)));
  }
  const std::string shown = testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  EXPECT_THAT(shown, MatchesRegex(".*a log cannot be read, and is tried again: open x: EIO\n"
                                  ".*a log cannot be read: open y\n"));
}

TEST(AgentLogUpload, ItsEndDoesNotWaitForADiskThatHangs) {
  LogServer server;
  FaultFiles disk;
  disk.Put("/work/logs/x", "x");
  disk.Hang("/work");
  auto files = std::make_shared<FaultFiles>(disk);
  const std::weak_ptr<FaultFiles> kept = files;
  {
    LogUploader uploader(std::move(files), "/work/logs", 0, server.Client(), milliseconds(1));
    disk.AwaitHanging();
    EXPECT_FALSE(uploader.Finish(milliseconds(1)));
  }
  EXPECT_TRUE(Thread::AnyLeft());
  disk.Hang("");
  while (!kept.expired()) std::this_thread::yield();  // the thread has ended
}

// A version without what was read would be continued by any text.
TEST(AgentLogVersion, WhatCannotBeReadHasNone) {
  FaultFiles disk;
  disk.Put("/table.csv", Counting(100'000));
  const auto file = disk.Open("/table.csv");
  ASSERT_TRUE(file.ok());
  const FileFacts facts = *(*file)->Stat();
  for (uint64_t read = 1; read <= 2; ++read) {
    disk.FailOperation(read, {Code::kInternal, "EIO"});
    EXPECT_FALSE(LogVersion::Of(**file, facts).ok()) << read;
  }
  const Result<LogVersion> version = LogVersion::Of(**file, facts);
  ASSERT_TRUE(version.ok());
  for (uint64_t read = 1; read <= 2; ++read) {
    disk.FailOperation(read, {Code::kInternal, "EIO"});
    EXPECT_FALSE(version->ContinuedBy(**file, facts).ok()) << read;
  }
  EXPECT_TRUE(*version->ContinuedBy(**file, facts));
  ASSERT_TRUE((*file)->WriteAt(0, "another").ok());
  EXPECT_FALSE(*version->ContinuedBy(**file, *(*file)->Stat()));
}

TEST(AgentLogUpload, ALongOutputIsKeptInTwoHalves) {
  const TempFolder t;
  LogServer server;
  const std::string text = Counting(5 * kMiB + 100'000);
  t.Write("logs/user/stdout/0/process000.stdout.txt", text);
  t.Write("logs/mine.txt", text);
  {
    LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0, server.Client(),
                         std::chrono::hours(1));
    uploader.SetLimit(kMiB);
    ASSERT_TRUE(uploader.Finish(seconds(60)));
  }
  EXPECT_TRUE(server.files["user/files/0/mine.txt"] == text);  // not an output of a process
  const std::string first = server.files["user/stdout/0/process000.stdout.txt"];
  const std::string second = server.files["user/stdout/0/process000.stdout.1.txt"];
  EXPECT_LE(first.size() + second.size(), kMiB + 200);
  const std::string& newer = first.ends_with(text.substr(text.size() - 100)) ? first : second;
  const std::string& older = &newer == &first ? second : first;
  // Each says where it begins, and together they are the end of the output.
  for (const std::string* half : {&older, &newer}) {
    ASSERT_THAT(half->substr(0, 80), MatchesRegex("\\[ParallelRun: byte [0-9]+ of this (.|\n)*"));
  }
  const auto begin = [](const std::string& half) { return std::stoul(half.substr(19)); };
  const auto body = [](const std::string& half) { return half.substr(half.find('\n') + 1); };
  EXPECT_TRUE(body(older) + body(newer) == text.substr(begin(older)));
  EXPECT_EQ(begin(older) + body(older).size(), begin(newer));
}

TEST(AgentLogUpload, WhatWasDroppedBeforeItsUploadIsMarked) {
  const TempFolder t;
  LogServer server;
  const std::string text = Counting(4 * kMiB);
  t.Write("logs/user/stderr/0/process000.stderr.txt", text);
  const int fd = OpenAppend(t.path("logs/user/stderr/0/process000.stderr.txt"));
  TrimLog(fd, kMiB);
  close(fd);
  {
    LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0, server.Client(),
                         std::chrono::hours(1));
    ASSERT_TRUE(uploader.Finish(seconds(60)));
  }
  const std::string log = server.files["user/stderr/0/process000.stderr.txt"];
  EXPECT_THAT(log.substr(0, 60), StartsWith("\n[ParallelRun: "));
  EXPECT_THAT(log.substr(0, 60), HasSubstr(" bytes are missing here]\n"));
  EXPECT_THAT(log, EndsWith(text.substr(text.size() - 1000)));
  EXPECT_EQ(log.find('\0'), std::string::npos);
}

struct RewriteCase {
  const char* name;
  std::string before;
  std::string after;
  bool renamed = false;  // another file takes its name
};

// What is in the tree at the end is what is in the file at the end.
TEST(AgentLogUpload, AFileWrittenAnewIsUploadedAnew) {
  const std::string big(100'000, 'a');
  const RewriteCase cases[] = {
      {"shorter", "12345678901234567890", "short"},
      {"same length", "12345678901234567890", "abcdefghijklmnopqrst"},
      {"longer", "12345678901234567890", "a table with more columns"},
      {"another head only", big, "b" + big.substr(1) + "more"},
      {"another tail only", big, big.substr(1) + "b" + "more"},
      {"same length, another tail only", big, big.substr(1) + "b"},
      {"of many calls", Counting(3 * kMiB), std::string(2 * kMiB + 7, 'x')},
      {"empty", "12345678901234567890", ""},
      {"renamed", big, big.substr(0, 50'000) + "b" + big.substr(50'001), true},
  };
  for (const RewriteCase& c : cases) {
    // Right after it was sent, and when it has been quiet for so long that it is not opened.
    for (const bool quiet : {false, true}) {
      SCOPED_TRACE(testing::Message() << c.name << (quiet ? ", quiet" : ""));
      const TempFolder t;
      LogServer server;
      t.Write("logs/table.csv", c.before);
      {
        LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0, server.Client(),
                             milliseconds(3));
        server.Await("user/files/0/table.csv", c.before);
        for (int round = 0; quiet && round < 10; ++round) {
          t.Write("logs/round" + std::to_string(round), "x");
          server.Await("user/files/0/round" + std::to_string(round), "x");
        }
        if (c.renamed) {
          t.Write("table.csv", c.after);
          ASSERT_EQ(rename(t.path("table.csv").c_str(), t.path("logs/table.csv").c_str()), 0);
        } else {
          t.Write("logs/table.csv", c.after);
        }
        ASSERT_TRUE(uploader.Finish(seconds(60)));
      }
      EXPECT_TRUE(server.files["user/files/0/table.csv"] == c.after)
          << server.files["user/files/0/table.csv"].substr(0, 100);
    }
  }
}

TEST(AgentLogUpload, WhatWasAppendedIsSentOnce) {
  const TempFolder t;
  LogServer server;
  std::string text = Counting(100'000);
  t.Write("logs/mine.txt", text);
  {
    LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0, server.Client(), milliseconds(3));
    server.Await("user/files/0/mine.txt", text);
    const int fd = OpenAppend(t.path("logs/mine.txt"));
    for (int line = 0; line < 20; ++line) {
      ASSERT_EQ(write(fd, "a line\n", 7), 7);
      text += "a line\n";
      server.Await("user/files/0/mine.txt", text);
    }
    ASSERT_EQ(futimens(fd, nullptr), 0);  // touched
    close(fd);
    ASSERT_TRUE(uploader.Finish(seconds(60)));
  }
  EXPECT_TRUE(server.files["user/files/0/mine.txt"] == text);
  EXPECT_EQ(server.received, text.size());
}

TEST(AgentLogUpload, NamesOfTheSecondHalf) {
  EXPECT_EQ(SecondHalf("user/stdout/0/process000.stdout.txt"),
            "user/stdout/0/process000.stdout.1.txt");
  EXPECT_EQ(SecondHalf("user/std.out/name"), "user/std.out/name.1");
  EXPECT_TRUE(IsRotated("sys/node/0/process000.txt"));
  EXPECT_FALSE(IsRotated("sys/node/0/process000.profile"));
  EXPECT_FALSE(IsRotated("user/files/0/x.txt"));
}

}  // namespace
}  // namespace parallelrun::agent
