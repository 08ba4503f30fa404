// Logs that stay within their bounds: on this machine, at the coordinator, and in the hot path.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "agent/logs/log_trim.h"
#include "agent/logs/log_upload.h"
#include "agent/logs/mini_batch_log.h"
#include "agent/processes/process.h"
#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/http/target.h"
#include "base/log.h"
#include "tests/unit/agent/temp_folder.h"

namespace parallelrun {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr uint64_t kMiB = uint64_t{1} << 20;

uint64_t OnDisk(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * 512 : 0;
}

int OpenAppend(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

// The lines "0\n", "1\n", … up to at least `bytes`.
std::string Counting(size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i) text += std::to_string(i) + "\n";
  return text;
}

// Keeps what is put, as a coordinator does.
class LogTree {
 public:
  LogTree() {
    auto started = HttpServer::Start(
        loop_, {}, [](const HttpRequest&) { return size_t{8} << 20; },
        [this](const std::shared_ptr<HttpExchange>& exchange) { Handle(*exchange); });
    EXPECT_TRUE(started.ok());
    server_ = std::move(*started);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~LogTree() {
    loop_.Stop();
    thread_.join();
  }
  std::unique_ptr<HttpClient> Client() const {
    HttpClientOptions options;
    options.base_url = "http://127.0.0.1:" + std::to_string(port_);
    return std::move(*HttpClient::Make(options));
  }
  // Until the file is that.
  void Await(const std::string& name, const std::string& text) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, seconds(20), [&] { return files[name] == text; }))
        << name << " is " << files[name];
  }
  std::map<std::string, std::string> files;  // read it after Finish
  size_t most = 0;                           // bytes of all files together, ever
  size_t received = 0;                       // bytes

 private:
  void Handle(HttpExchange& exchange) {
    const std::lock_guard lock(mutex_);
    const HttpRequest& request = exchange.request();
    std::string& file = files[request.path.substr(std::string("/v1/nodes/0/logs/").size())];
    const size_t offset = std::stoul(QueryParameter(request.query, "offset").value_or("x"));
    if (QueryParameter(request.query, "truncate") == "true") file.clear();
    EXPECT_EQ(offset, file.size()) << request.path;  // nothing is lost, nothing twice
    file += request.body;
    size_t all = 0;
    for (const auto& [name, bytes] : files) all += bytes.size();
    most = std::max(most, all);
    received += request.body.size();
    changed_.notify_all();
    exchange.Respond(TextResponse(200, "ok"));
  }
  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

TEST(AgentLogTrim, TheOldestBytesBecomeAHole) {
  const TempFolder t;
  const std::string path = t.path("log.txt");
  const int fd = OpenAppend(path);
  const std::string text = Counting(4 * kMiB);
  ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  TrimLog(fd, 8 * kMiB);
  EXPECT_TRUE(t.Read("log.txt") == text);
  TrimLog(fd, kMiB);
  EXPECT_LE(OnDisk(path), kMiB);
  const std::string after = t.Read("log.txt");
  ASSERT_EQ(after.size(), text.size());
  EXPECT_TRUE(after.substr(text.size() - kMiB / 2) == text.substr(text.size() - kMiB / 2));
  EXPECT_EQ(after[0], '\0');
  const int reading = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const uint64_t kept = KeptFrom(reading, 5);
  EXPECT_GT(kept, text.size() - kMiB);
  EXPECT_LE(kept, text.size() - kMiB / 2);
  EXPECT_EQ(KeptFrom(reading, text.size() - 10), text.size() - 10);
  EXPECT_EQ(KeptFrom(reading, text.size()), text.size());
  close(reading);
  close(fd);
}

TEST(AgentLogUpload, ALongOutputIsKeptInTwoHalves) {
  const TempFolder t;
  LogTree tree;
  const std::string text = Counting(5 * kMiB + 100'000);
  t.Write("logs/user/stdout/0/process000.stdout.txt", text);
  t.Write("logs/mine.txt", text);
  {
    LogUploader uploader(t.path("logs"), 0, tree.Client(), std::chrono::hours(1));
    uploader.SetLimit(kMiB);
    ASSERT_TRUE(uploader.Finish(seconds(20)));
  }
  EXPECT_TRUE(tree.files["user/files/0/mine.txt"] == text);  // not an output of a process
  const std::string first = tree.files["user/stdout/0/process000.stdout.txt"];
  const std::string second = tree.files["user/stdout/0/process000.stdout.1.txt"];
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
  LogTree tree;
  const std::string text = Counting(4 * kMiB);
  t.Write("logs/user/stderr/0/process000.stderr.txt", text);
  const int fd = OpenAppend(t.path("logs/user/stderr/0/process000.stderr.txt"));
  TrimLog(fd, kMiB);
  close(fd);
  {
    LogUploader uploader(t.path("logs"), 0, tree.Client(), std::chrono::hours(1));
    ASSERT_TRUE(uploader.Finish(seconds(20)));
  }
  const std::string log = tree.files["user/stderr/0/process000.stderr.txt"];
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
      LogTree tree;
      t.Write("logs/table.csv", c.before);
      {
        LogUploader uploader(t.path("logs"), 0, tree.Client(), milliseconds(3));
        tree.Await("user/files/0/table.csv", c.before);
        for (int round = 0; quiet && round < 10; ++round) {
          t.Write("logs/round" + std::to_string(round), "x");
          tree.Await("user/files/0/round" + std::to_string(round), "x");
        }
        if (c.renamed) {
          t.Write("table.csv", c.after);
          ASSERT_EQ(rename(t.path("table.csv").c_str(), t.path("logs/table.csv").c_str()), 0);
        } else {
          t.Write("logs/table.csv", c.after);
        }
        ASSERT_TRUE(uploader.Finish(seconds(20)));
      }
      EXPECT_TRUE(tree.files["user/files/0/table.csv"] == c.after)
          << tree.files["user/files/0/table.csv"].substr(0, 100);
    }
  }
}

TEST(AgentLogUpload, WhatWasAppendedIsSentOnce) {
  const TempFolder t;
  LogTree tree;
  std::string text = Counting(100'000);
  t.Write("logs/mine.txt", text);
  {
    LogUploader uploader(t.path("logs"), 0, tree.Client(), milliseconds(3));
    tree.Await("user/files/0/mine.txt", text);
    const int fd = OpenAppend(t.path("logs/mine.txt"));
    for (int line = 0; line < 20; ++line) {
      ASSERT_EQ(write(fd, "a line\n", 7), 7);
      text += "a line\n";
      tree.Await("user/files/0/mine.txt", text);
    }
    ASSERT_EQ(futimens(fd, nullptr), 0);  // touched
    close(fd);
    ASSERT_TRUE(uploader.Finish(seconds(20)));
  }
  EXPECT_TRUE(tree.files["user/files/0/mine.txt"] == text);
  EXPECT_EQ(tree.received, text.size());
}

TEST(AgentLogUpload, NamesOfTheSecondHalf) {
  EXPECT_EQ(SecondHalf("user/stdout/0/process000.stdout.txt"),
            "user/stdout/0/process000.stdout.1.txt");
  EXPECT_EQ(SecondHalf("user/std.out/name"), "user/std.out/name.1");
  EXPECT_TRUE(IsRotated("sys/node/0/process000.txt"));
  EXPECT_FALSE(IsRotated("sys/node/0/process000.profile"));
  EXPECT_FALSE(IsRotated("user/files/0/x.txt"));
}

// A real process that prints without end.
TEST(AgentLogs, AScriptThatPrintsWithoutEndFillsNoDisk) {
  const TempFolder t;
  EventLoop loop;
  const MemoryGroup memory("/nonexistent");
  LogTree tree;
  const std::string path = t.path("logs/user/stdout/0/process000.stdout.txt");
  {
    LogUploader uploader(t.path("logs"), 0, tree.Client(), milliseconds(10));
    uploader.SetLimit(kMiB);
    auto process = WorkerProcess::Start(loop,
                                        {{"python3", "-S", "-c", "while True: print('x' * 4000)"},
                                         {"PATH=/usr/local/bin:/usr/bin:/bin"},
                                         t.path(),
                                         path,
                                         t.path("logs/user/stderr/0/process000.stderr.txt")},
                                        memory, [](FrameType, std::string_view) { return true; });
    ASSERT_TRUE(process.ok());
    uint64_t printed = 0;
    const std::function<void()> look = [&] {
      (*process)->TrimLogs(kMiB);
      struct stat info {};
      if (stat(path.c_str(), &info) == 0) printed = static_cast<uint64_t>(info.st_size);
      if (printed > 50 * kMiB) return loop.Stop();
      loop.After(milliseconds(1), look);
    };
    look();
    const EventLoop::TimerId watchdog = loop.After(seconds(50), [&loop] { loop.Stop(); });
    loop.Run();
    loop.Cancel(watchdog);
    (*process)->Kill();
    (*process)->TrimLogs(kMiB);
    EXPECT_GT(printed, 50 * kMiB);
    EXPECT_LE(OnDisk(path), 2 * kMiB);  // what was written between two looks comes on top
    process->reset();
    EXPECT_TRUE(uploader.Finish(seconds(20)));
  }
  EXPECT_LE(tree.most, kMiB + 1000);
  EXPECT_THAT(tree.files["user/stdout/0/process000.stdout.txt"], HasSubstr("[ParallelRun: "));
}

TEST(AgentLogs, ItsOwnLogHasTheFormatOfTheTree) {
  const TempFolder t;
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  testing::internal::CaptureStderr();
  SetUpLogging(LogFormat::kTree, LogLevel::kInfo);
  LogToFile(t.path("sys/node/0/_main.txt"));
  spdlog::debug("hidden");
  spdlog::warn("slow");
  const std::string shown = testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  EXPECT_THAT(shown, MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8},[0-9]{3}\\|WARNING\\|" +
                                  std::to_string(getpid()) + "\\|[0-9]+\\|slow\n"));
  EXPECT_EQ(t.Read("sys/node/0/_main.txt"), shown);
}

TEST(AgentMiniBatchLog, ALineForEach) {
  const WallTime now{seconds(1'795'252'500) + milliseconds(120)};
  MiniBatchNote note{0, 17, 10, 8, 1'500'000'000, 250'000'000, 1'000'000'000, ""};
  EXPECT_EQ(MiniBatchLine(note, "10.0.0.4", 99, now),
            "2026-11-21 09:15:00,120|INFO|99|99|mini-batch 17 on 10.0.0.4, PID 99: done, total 10, "
            "succeeded 8, failed 2, start 2026-11-21 09:14:58,620, duration 1.500000 s, process "
            "time 0.250000 s, run method time 1.000000 s\n");
  note.error_kind = "RunTimeout";
  EXPECT_THAT(MiniBatchLine(note, "h", 99, now),
              HasSubstr("|WARNING|99|99|mini-batch 17 on h, PID 99: failed: RunTimeout, total 10, "
                        "succeeded 0, failed 10,"));
}

TEST(AgentMiniBatchLog, AboveAThousandASecondItIsOneLineOfSums) {
  const TempFolder t;
  MiniBatchLog log(t.path("sys/node/0"), "10.0.0.4");
  log.Open(0, 99);
  log.Open(1, 98);
  const WallTime now{seconds(1'795'252'500)};
  std::vector<MiniBatchNote> notes(70'000, MiniBatchNote{0, 5, 1, 1, 10, 2000, 3000, ""});
  notes.back().error_kind = "Exception";
  log.Add(notes, now);
  log.Add({MiniBatchNote{2, 1, 1, 1, 1, 1, 1, ""}}, now);  // of a process that is not known
  log.Flush(now, kMiB);
  std::string text = t.Read("sys/node/0/process000.txt");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1000);
  log.Close(0);
  log.Add({MiniBatchNote{1, 7, 1, 1, 1, 1, 1, ""}}, now + seconds(1));
  for (int i = 0; i < 3; ++i) log.Flush(now + seconds(1), kMiB);
  text = t.Read("sys/node/0/process000.txt");
  EXPECT_THAT(text, EndsWith("|INFO|99|99|69000 more mini-batches on 10.0.0.4, PID 99: failed "
                             "mini-batches 1, total 69000, succeeded 68999, process time 0.138000 "
                             "s, run method time 0.207000 s\n"));
  text = t.Read("sys/node/0/process001.txt");
  EXPECT_THAT(text, HasSubstr("mini-batch 7 on"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(AgentMiniBatchLog, TheLastSecondIsToldAtTheEnd) {
  const TempFolder t;
  MiniBatchLog log(t.path("sys/node/0"), "10.0.0.4");
  log.Open(0, 99);
  const WallTime now{seconds(1'795'252'500)};
  log.Add(std::vector<MiniBatchNote>(1500, MiniBatchNote{0, 5, 1, 1, 10, 2000, 3000, ""}), now);
  log.Finish(now, kMiB);
  EXPECT_THAT(t.Read("sys/node/0/process000.txt"), HasSubstr("|500 more mini-batches on"));
}

}  // namespace
}  // namespace parallelrun
