// Logs that stay within their bounds: on this machine, at the coordinator, and in the hot path.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/logs/log_trim.h"
#include "agent/logs/log_trimmer.h"
#include "agent/logs/log_upload.h"
#include "agent/logs/mini_batch_log.h"
#include "agent/processes/process.h"
#include "base/event_loop.h"
#include "base/log.h"
#include "tests/support/disk_files.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/agent/logs/log_server.h"

namespace parallelrun::agent {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

uint64_t OnDisk(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * 512 : 0;
}

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

TEST(AgentLogTrim, ATrimmerBoundsThoseOfLiveProcesses) {
  const TempFolder t;
  const std::string text = Counting(4 * kMiB);
  const auto log = [&](const std::string& name) {
    Fd fd(OpenAppend(t.path(name)));
    EXPECT_EQ(write(fd.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    std::vector<Fd> logs;
    logs.push_back(std::move(fd));
    return logs;
  };
  {
    LogTrimmer trimmer(std::chrono::hours(24));  // what it does, it does at its end
    trimmer.SetLimit(kMiB);
    trimmer.Add(0, log("lives.txt"));
    trimmer.Add(1, log("ended.txt"));
    trimmer.Forget(1);
    trimmer.Forget(2);
  }
  EXPECT_LE(OnDisk(t.path("lives.txt")), kMiB);
  EXPECT_TRUE(t.Read("ended.txt") == text);
}

TEST(AgentLogTrim, ATrimmerLooksAgainAndAgain) {
  const TempFolder t;
  LogTrimmer trimmer(milliseconds(1));
  trimmer.SetLimit(kMiB);
  std::vector<Fd> logs;
  logs.emplace_back(OpenAppend(t.path("log.txt")));
  trimmer.Add(0, std::move(logs));
  const Fd writing(OpenAppend(t.path("log.txt")));
  const std::string text = Counting(4 * kMiB);
  EventLoop loop;
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(write(writing.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    const std::function<void()> look = [&] {
      if (OnDisk(t.path("log.txt")) <= kMiB) return loop.Stop();
      loop.After(milliseconds(1), look);
    };
    look();
    const EventLoop::TimerId watchdog = loop.After(seconds(60), [&loop] { loop.Stop(); });
    loop.Run();
    loop.Cancel(watchdog);
    EXPECT_LE(OnDisk(t.path("log.txt")), kMiB);
  }
}

// A real process that prints without end.
TEST(AgentLogs, AScriptThatPrintsWithoutEndFillsNoDisk) {
  const TempFolder t;
  EventLoop loop;
  const MemoryGroup memory("/nonexistent");
  LogServer server;
  const std::string path = t.path("logs/user/stdout/0/process000.stdout.txt");
  constexpr uint64_t kPrinted = 10 * kMiB;
  {
    LogUploader uploader(MakeSystemFiles(), t.path("logs"), 0, server.Client(), milliseconds(10));
    uploader.SetLimit(kMiB);
    auto process = WorkerProcess::Start(loop, DiskFiles(),
                                        {{"python3", "-S", "-c", "while True: print('x' * 4000)"},
                                         {"PATH=/usr/local/bin:/usr/bin:/bin"},
                                         t.path(),
                                         path,
                                         t.path("logs/user/stderr/0/process000.stderr.txt")},
                                        memory, [](FrameType, std::string_view) { return true; });
    ASSERT_TRUE(process.ok());
    uint64_t printed = 0;
    const auto trim = [logs = (*process)->Logs()] {
      for (const Fd& log : logs) TrimLog(log.get(), kMiB);
    };
    const std::function<void()> look = [&] {
      trim();
      struct stat info {};
      if (stat(path.c_str(), &info) == 0) printed = static_cast<uint64_t>(info.st_size);
      if (printed > kPrinted) return loop.Stop();
      loop.After(milliseconds(1), look);
    };
    look();
    const EventLoop::TimerId watchdog = loop.After(seconds(60), [&loop] { loop.Stop(); });
    loop.Run();
    loop.Cancel(watchdog);
    (*process)->Kill();
    trim();
    EXPECT_GT(printed, kPrinted);
    EXPECT_LE(OnDisk(path), 2 * kMiB);  // what was written between two looks comes on top
    process->reset();
    EXPECT_TRUE(uploader.Finish(seconds(60)));
  }
  EXPECT_LE(server.most, kMiB + 1000);
  EXPECT_THAT(server.files["user/stdout/0/process000.stdout.txt"], HasSubstr("[ParallelRun: "));
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
  MiniBatchNote note{{.run_ns = 1'000'000'000,
                      .cpu_ns = 250'000'000,
                      .elapsed_ns = 1'500'000'000,
                      .items_succeeded = 8},
                     0,
                     17,
                     10,
                     ""};
  EXPECT_EQ(MiniBatchLine(note, "10.0.0.4", 99, now),
            "2026-11-21 09:15:00,120|INFO|99|99|mini-batch 17 on 10.0.0.4, PID 99: done, total 10, "
            "succeeded 8, failed 0, start 2026-11-21 09:14:58,620, duration 1.500000 s, process "
            "time 0.250000 s, run method time 1.000000 s\n");
  note.items_skipped = 2;
  EXPECT_THAT(MiniBatchLine(note, "h", 99, now), HasSubstr("succeeded 8, failed 2,"));
  note.error_kind = "RunTimeout";
  EXPECT_THAT(MiniBatchLine(note, "h", 99, now),
              HasSubstr("|WARNING|99|99|mini-batch 17 on h, PID 99: failed: RunTimeout, total 10, "
                        "succeeded 0, failed 10,"));
}

constexpr job::AttemptResult kShort{
    .run_ns = 3000, .cpu_ns = 2000, .elapsed_ns = 10, .items_succeeded = 1};

TEST(AgentMiniBatchLog, AboveAThousandASecondItIsOneLineOfSums) {
  const TempFolder t;
  MiniBatchLog log(DiskFiles(), t.path("sys/node/0"), "10.0.0.4");
  log.Open(0, 99);
  log.Open(1, 98);
  const WallTime now{seconds(1'795'252'500)};
  std::vector<MiniBatchNote> notes(70'000, MiniBatchNote{kShort, 0, 5, 1, ""});
  notes.back().error_kind = "Exception";
  log.Add(notes, now);
  log.Add({MiniBatchNote{kShort, 2, 1, 1, ""}}, now);  // of a process that is not known
  log.Flush(now, kMiB);
  std::string text = t.Read("sys/node/0/process000.txt");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1000);
  log.Close(0);
  log.Add({MiniBatchNote{kShort, 1, 7, 1, ""}}, now + seconds(1));
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
  MiniBatchLog log(DiskFiles(), t.path("sys/node/0"), "10.0.0.4");
  log.Open(0, 99);
  const WallTime now{seconds(1'795'252'500)};
  log.Add(std::vector<MiniBatchNote>(1500, MiniBatchNote{kShort, 0, 5, 1, ""}), now);
  log.Finish(now, kMiB);
  EXPECT_THAT(t.Read("sys/node/0/process000.txt"), HasSubstr("|500 more mini-batches on"));
}

TEST(AgentMiniBatchLog, IsKeptWithinItsLimit) {
  const TempFolder t;
  MiniBatchLog log(DiskFiles(), t.path("sys/node/0"), "10.0.0.4");
  log.Open(0, 99);
  constexpr uint64_t kLimit = kMiB / 8;
  std::vector<MiniBatchNote> notes(1000, MiniBatchNote{kShort, 0, 5, 1, ""});
  for (int second = 0; second < 3; ++second) {
    const WallTime now{seconds(1'795'252'500 + second)};
    notes.back().id = 77 + static_cast<uint64_t>(second);
    log.Add(notes, now);
    log.Flush(now, kLimit);
    EXPECT_LE(OnDisk(t.path("sys/node/0/process000.txt")), kLimit);
    EXPECT_THAT(t.Read("sys/node/0/process000.txt"),
                EndsWith(MiniBatchLine(notes.back(), "10.0.0.4", 99, now)));
  }
}

constexpr char kFile[] = "/logs/sys/node/0/process000.txt";
const WallTime kThen{seconds(1'795'252'500)};

// A log on a disk that fails, and the line that becomes of a mini-batch.
struct FailingLog {
  FailingLog() { EXPECT_TRUE(disk.MakeFolders("/logs").ok()); }
  std::string Add(uint64_t id) {
    const MiniBatchNote note{kShort, 0, id, 1, ""};
    log.Add({note}, kThen);
    return MiniBatchLine(note, "10.0.0.4", 99, kThen);
  }

  FaultFiles disk;
  MiniBatchLog log{disk, "/logs/sys/node/0", "10.0.0.4"};
};

TEST(AgentMiniBatchLog, AFullDiskDelaysItAndTearsNoLine) {
  FailingLog failing;
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  testing::internal::CaptureStderr();
  SetUpLogging(LogFormat::kTree, LogLevel::kInfo);
  failing.log.Open(0, 99);
  std::string text = failing.Add(1);
  text += failing.Add(2);
  failing.disk.SetCapacity(100);
  failing.log.Flush(kThen, kMiB);
  EXPECT_EQ(failing.disk.Contents(kFile), text.substr(0, 100));
  text += failing.Add(3);
  failing.log.Close(0);
  for (int i = 0; i < 5; ++i) failing.log.Flush(kThen, kMiB);
  EXPECT_EQ(failing.disk.Contents(kFile), text.substr(0, 100));
  failing.disk.SetCapacity(std::nullopt);
  for (int i = 0; i < 3; ++i) failing.log.Flush(kThen, kMiB);
  const std::string shown = testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  EXPECT_EQ(failing.disk.Contents(kFile), text);
  EXPECT_THAT(shown, MatchesRegex(".*mini-batches of process000 is not written: write "
                                  "/logs/sys/node/0/process000.txt: the simulated disk is full\n"
                                  ".*mini-batches of process000 is written again\n"));
}

TEST(AgentMiniBatchLog, AFaultLosesNoLine) {
  FailingLog counted;
  const uint64_t before = counted.disk.operations();
  counted.log.Open(0, 99);
  std::string text = counted.Add(1);
  counted.log.Flush(kThen, kMiB);
  text += counted.Add(2);
  counted.log.Flush(kThen, kMiB);
  EXPECT_EQ(counted.disk.Contents(kFile), text);
  const uint64_t operations = counted.disk.operations() - before;
  for (const FaultMoment moment : {FaultMoment::kBefore, FaultMoment::kAfter}) {
    for (uint64_t operation = 1; operation <= operations; ++operation) {
      FailingLog failing;
      failing.disk.FailOperation(operation, {Code::kInternal, "EIO"}, moment);
      failing.log.Open(0, 99);
      for (const uint64_t id : {1U, 2U}) {
        failing.Add(id);
        failing.log.Flush(kThen, kMiB);
      }
      failing.log.Finish(kThen, kMiB);
      EXPECT_EQ(failing.disk.Contents(kFile), text) << operation;
    }
  }
}

TEST(AgentMiniBatchLog, WhatWaitsForADiskIsBoundedAndTheRestIsCounted) {
  constexpr int kSeconds = 30;
  FailingLog failing;
  failing.log.Open(0, 99);
  failing.disk.SetCapacity(0);
  const std::vector<MiniBatchNote> notes(1000, MiniBatchNote{kShort, 0, 5, 1, ""});
  WallTime now = kThen;
  for (int second = 0; second < kSeconds; ++second, now += seconds(1)) {
    failing.log.Add(notes, now);
    failing.log.Flush(now, kMiB);
  }
  failing.disk.SetCapacity(std::nullopt);
  failing.log.Finish(now, 8 * kMiB);
  const std::string text = failing.disk.Contents(kFile);
  EXPECT_LE(text.size(), MiniBatchLog::kMostWaiting + 1000);
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  constexpr char kWords[] = "|WARNING|99|99|here lines are missing that could not be written: ";
  ASSERT_THAT(last, HasSubstr(kWords));
  const auto lost = std::stol(last.substr(last.rfind(' ') + 1));
  EXPECT_GT(lost, 0);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n') - 1 + lost, 1000 * kSeconds);
}

}  // namespace
}  // namespace parallelrun::agent
