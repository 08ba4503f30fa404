#include "agent/processes/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/agent_config.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/time.h"
#include "base/version.h"
#include "job/node_messages.h"
#include "job/side_list.h"
#include "tests/support/disk_files.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What every script below begins with: the protocol in ten lines.
constexpr char kPrelude[] = R"(
import mmap, os, struct, sys, time
page = memoryview(mmap.mmap(4, 4096)).cast("Q")
def send(kind, body=b""):
    data = struct.pack("<IB", len(body), kind) + body
    while data:
        data = data[os.write(3, data):]
def exactly(n):
    data = b""
    while len(data) < n:
        more = os.read(3, n - len(data))
        if not more: os._exit(9)
        data += more
    return data
def receive():
    size, kind = struct.unpack("<IB", exactly(5))
    return kind, exactly(size)
)";

class AgentProcess : public ::testing::Test {
 protected:
  std::unique_ptr<WorkerProcess> Start(const std::string& script,
                                       std::vector<std::string> environment = {}) {
    environment.emplace_back("PATH=/usr/local/bin:/usr/bin:/bin");
    Result<std::unique_ptr<WorkerProcess>> process =
        WorkerProcess::Start(loop_, DiskFiles(),
                             {{"python3", "-S", "-c", kPrelude + script},
                              environment,
                              folder_.path(),
                              folder_.path("logs/out.txt"),
                              folder_.path("logs/err.txt")},
                             memory_, [this](FrameType type, std::string_view body) {
                               frames_.emplace_back(type, std::string(body));
                               return accept_;
                             });
    EXPECT_TRUE(process.ok()) << process.error().message;
    return std::move(*process);
  }

  // Runs the loop until the process has ended; returns how.
  std::string End(WorkerProcess& process) {
    std::string words = "(did not end)";
    const auto look = [&] {
      if (const std::optional<std::string> end = process.Reap()) {
        words = *end;
        loop_.Stop();
      }
    };
    loop_.OnSignal(SIGCHLD, look);
    loop_.Post(look);
    const EventLoop::TimerId watchdog = loop_.After(seconds(20), [this] { loop_.Stop(); });
    loop_.Run();
    loop_.Cancel(watchdog);
    return words;
  }

  TempFolder folder_;
  EventLoop loop_;
  MemoryGroup memory_{"/nonexistent"};
  std::vector<std::pair<FrameType, std::string>> frames_;
  bool accept_ = true;
};

TEST_F(AgentProcess, ItsLastOutputIsFoundByTheStatusPage) {
  const auto process = Start(R"(
print("of another one", flush=True)
page[4], page[5] = 15, 0
print("its own", flush=True)
print("error", file=sys.stderr, flush=True)
os._exit(1)
)");
  EXPECT_THAT(End(*process), HasSubstr("exited with status 1"));
  EXPECT_EQ(process->Output(), (job::OutputRanges{15, 23, 0, 6}));
}

TEST_F(AgentProcess, TalksBothWays) {
  const auto process = Start(R"(
kind, body = receive()
assert kind == 2, kind
print("to stdout", flush=True)
send(19, body)
send(21)
)");
  const std::string work(3 << 20, 'w');
  AppendBatchFrame(process->out(), 5, work);
  process->Flush();
  EXPECT_EQ(End(*process), "exited with status 0");
  ASSERT_EQ(frames_.size(), 2U);
  const std::optional<RowsFrame> rows = ParseRows(frames_[0].second);
  ASSERT_TRUE(rows);
  EXPECT_EQ(rows->sequence, 5U);
  EXPECT_EQ(rows->rows, work);
  EXPECT_EQ(frames_[1].first, FrameType::kStopped);
  EXPECT_EQ(folder_.Read("logs/out.txt"), "to stdout\n");
}

TEST_F(AgentProcess, TellsHowItEnded) {
  EXPECT_THAT(End(*Start("sys.stderr.write('last words\\x1b[1m\\n'); sys.exit(3)")),
              "exited with status 3; its stderr ended with: last words\\x1b[1m");
  EXPECT_THAT(End(*Start("os.kill(os.getpid(), 11)")),
              HasSubstr("was killed by signal 11 (SIGSEGV)"));
}

TEST_F(AgentProcess, ThePageTellsWhatItWorkedOn) {
  const auto process = Start("page[1] = 5_000_000; page[0] = 7 << 8 | 4; os._exit(1)");
  End(*process);
  EXPECT_EQ(process->Status().sequence, 7U);
  EXPECT_EQ(process->Status().phase, Phase::kRun);
  EXPECT_EQ(process->Status().since, Instant(milliseconds(5)));
}

TEST_F(AgentProcess, WhatIsTakenBackCountsOnceTheProcessMustKnow) {
  const auto process = Start("while page[3] != 7: time.sleep(0.001)");
  const Instant began = SystemClock().Now();
  process->TakeBack(7);
  while (process->Status().taken_back != 7) {
    ASSERT_LT(SystemClock().Now() - began, seconds(20));
    usleep(1000);
  }
  EXPECT_GE(SystemClock().Now() - began, milliseconds(100));
  EXPECT_EQ(End(*process), "exited with status 0");
}

TEST_F(AgentProcess, AWorkerCannotShrinkThePage) {
  EXPECT_THAT(End(*Start("os.ftruncate(4, 0)")), HasSubstr("exited with status 1"));
}

TEST_F(AgentProcess, FramesSentJustBeforeTheEndAreHandedIn) {
  const auto process = Start("for i in range(1000): send(16, b'12345678')\nos._exit(0)");
  EXPECT_EQ(End(*process), "exited with status 0");
  EXPECT_EQ(frames_.size(), 1000U);
}

TEST_F(AgentProcess, GarbageEndsIt) {
  for (const char* garbage :
       {R"(os.write(3, b"hello, world"))", R"(os.write(3, struct.pack("<IB", 1 << 30, 18)))",
        R"(os.write(3, struct.pack("<IB", 0, 3)))"}) {
    EXPECT_THAT(End(*Start(std::string(garbage) + "\ntime.sleep(60)")),
                HasSubstr("sent something that is not of the worker protocol"));
  }
}

TEST_F(AgentProcess, AFrameOutOfTurnEndsIt) {
  accept_ = false;
  EXPECT_THAT(End(*Start("send(16, b'12345678'); time.sleep(60)")), HasSubstr("may not send now"));
}

TEST_F(AgentProcess, AClosedConnectionEndsItInTheEnd) {
  EXPECT_THAT(End(*Start("os.close(3); time.sleep(60)")), HasSubstr("closed its connection"));
}

TEST_F(AgentProcess, KillTakesTheWholeGroup) {
  const auto process = Start(R"(
child = os.fork()
if child == 0:
    time.sleep(60)
send(16, struct.pack("<Q", child))
time.sleep(60)
)");
  loop_.OnSignal(SIGCHLD, [] {});
  while (frames_.empty()) {
    loop_.After(milliseconds(5), [this] { loop_.Stop(); });
    loop_.Run();
  }
  Decoder in(frames_[0].second);
  const auto child = static_cast<pid_t>(in.U64());
  process->Kill();
  EXPECT_EQ(End(*process), "was killed by signal 9 (SIGKILL)");
  // It is an orphan now; whoever reaps it, it is dead or about to be.
  for (int i = 0; i < 1000 && kill(child, 0) == 0; ++i) {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string text;
    std::getline(stat, text);
    if (text.find(") Z ") != std::string::npos) return;
    usleep(10'000);
  }
  EXPECT_NE(kill(child, 0), 0);
}

// A daemon, in a session of its own and nobody's child, that keeps forking. All of them hold `fifo`
// open; the script goes on once the daemon runs, and has sent its number.
constexpr char kDaemon[] = R"(
fifo = os.open("fifo", os.O_WRONLY)
ours, theirs = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() != 0: os._exit(0)
    os.write(theirs, struct.pack("<Q", os.getpid()))
    while True:
        if os.fork() == 0:
            os.setsid()
            time.sleep(0.01)
            os._exit(0)
        time.sleep(0.01)
        os.waitpid(-1, os.WNOHANG)
os.wait()
send(16, os.read(ours, 8))
)";

TEST_F(AgentProcess, ADaemonOfOneThatCrashedGoesWithIt) {
  ASSERT_EQ(mkfifo(folder_.path("fifo").c_str(), 0600), 0);
  const Fd fifo(open(folder_.path("fifo").c_str(), O_RDONLY | O_NONBLOCK));
  const auto process =
      Start(std::string(kDaemon) + "os.kill(os.getpid(), 11)", {"PARALLELRUN_PROCESS=outer"});
  EXPECT_THAT(End(*process), HasSubstr("SIGSEGV"));
  pollfd all_gone{fifo.get(), POLLIN, 0};
  ASSERT_EQ(frames_.size(), 1U);
  if (poll(&all_gone, 1, 20'000) == 1) return;
  ADD_FAILURE() << "it is still there";
  kill(static_cast<pid_t>(Decoder(frames_[0].second).U64()), SIGKILL);
}

TEST_F(AgentProcess, ADaemonOfOneThatEndedWellStays) {
  ASSERT_EQ(mkfifo(folder_.path("fifo").c_str(), 0600), 0);
  const Fd fifo(open(folder_.path("fifo").c_str(), O_RDONLY | O_NONBLOCK));
  const auto process = Start(std::string(kDaemon) + "os._exit(0)");
  EXPECT_EQ(End(*process), "exited with status 0");
  pollfd all_gone{fifo.get(), POLLIN, 0};
  EXPECT_EQ(poll(&all_gone, 1, 0), 0);
  ASSERT_EQ(frames_.size(), 1U);
  kill(static_cast<pid_t>(Decoder(frames_[0].second).U64()), SIGKILL);
  EXPECT_EQ(poll(&all_gone, 1, 20'000), 1);
}

TEST_F(AgentProcess, InheritsNothingElse) {
  const int secret = open("/etc/passwd", O_RDONLY);  // not close-on-exec
  const auto process = Start(R"(
links = []
for name in os.listdir("/proc/self/fd"):
    try: links.append(os.readlink("/proc/self/fd/" + name))
    except OSError: pass  # listdir's own
print(links, os.getpgrp() == os.getpid(), sorted(os.environ), os.getcwd(), flush=True)
)");
  EXPECT_EQ(End(*process), "exited with status 0");
  close(secret);
  const std::string out = folder_.Read("logs/out.txt");
  EXPECT_THAT(out, Not(HasSubstr("passwd")));
  EXPECT_THAT(out, Not(HasSubstr("eventpoll")));
  EXPECT_THAT(out,
              HasSubstr("] True ['LC_CTYPE', 'PARALLELRUN_PROCESS', 'PATH'] " + folder_.path()));
}

TEST_F(AgentProcess, DeathForMemoryIsToldInWords) {
  folder_.Write("proc/self/cgroup", "0::/pod\n");
  folder_.Write("sys/fs/cgroup/pod/memory.events", "low 0\noom 0\noom_kill 0\n");
  folder_.Write("sys/fs/cgroup/pod/memory.max", "4294967296\n");
  folder_.Write("sys/fs/cgroup/pod/memory.peak", "4273492459\n");
  const MemoryGroup group(folder_.path());
  Result<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(
      loop_, DiskFiles(),
      {{"/bin/sh", "-c", "kill -9 $$"}, {}, folder_.path(), folder_.path("o"), folder_.path("e")},
      group, [](FrameType, std::string_view) { return true; });
  ASSERT_TRUE(process.ok());
  folder_.Write("sys/fs/cgroup/pod/memory.events", "low 0\noom 1\noom_kill 1\n");
  const std::string words = End(**process);
  EXPECT_THAT(words, StartsWith("was killed by signal 9 (SIGKILL) by the kernel's out-of-memory "
                                "killer: the process had up to "));
  EXPECT_THAT(words, HasSubstr("iB, the container's limit is 4 GiB, its peak was 3.98 GiB. Lower "
                               "spec.miniBatchSize or "));
  (*process)->NoteEnd();
  EXPECT_THAT(folder_.Read("e"), HasSubstr("parallelrun: the process was killed by signal 9"));
}

TEST_F(AgentProcess, CgroupV1IsReadToo) {
  folder_.Write("proc/self/cgroup", "5:devices:/x\n4:memory:/docker/abc\n0::/\n");
  folder_.Write("sys/fs/cgroup/memory/memory.oom_control",
                "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
  folder_.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const MemoryGroup group(folder_.path());
  EXPECT_EQ(group.OomKills(), 3U);
  EXPECT_EQ(group.Words(), "");  // no limit
}

TEST_F(AgentProcess, AMissingInterpreterIsNamed) {
  const Result<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(
      loop_, DiskFiles(),
      {{"python9"}, {"PATH=/usr/bin"}, folder_.path(), folder_.path("o"), folder_.path("e")},
      memory_, [](FrameType, std::string_view) { return true; });
  ASSERT_FALSE(process.ok());
  EXPECT_THAT(process.error().message, HasSubstr("python9 is not in the PATH"));
}

// A missing interpreter ends the job; a log that cannot be begun must not.
TEST_F(AgentProcess, ALogThatCannotBeMadeIsNoMissingInterpreter) {
  const auto start = [this](const Files& files, const std::string& out) {
    const auto process = WorkerProcess::Start(
        loop_, files, {{"/bin/sh", "-c", ":"}, {}, folder_.path(), out, folder_.path("e")}, memory_,
        [](FrameType, std::string_view) { return true; });
    return process.ok() ? Error{Code::kInternal, "it has begun"} : process.error();
  };
  FaultFiles full;
  ASSERT_TRUE(full.MakeFolders("/work").ok());
  full.FailOperation(3, {Code::kNoSpace, "create folder /work/logs: full"});
  Error error = start(full, "/work/logs/out.txt");
  EXPECT_EQ(error.code, Code::kNoSpace);
  EXPECT_EQ(error.message, "create folder /work/logs: full");
  folder_.Write("taken", "x");
  error = start(DiskFiles(), folder_.path("taken/out.txt"));
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, HasSubstr(folder_.path("taken")));
  ASSERT_EQ(mkfifo(folder_.path("pipe").c_str(), 0600), 0);
  error = start(DiskFiles(), folder_.path("pipe"));
  EXPECT_THAT(error.message, HasSubstr(folder_.path("pipe")));
  const Fd reader(open(folder_.path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  error = start(DiskFiles(), folder_.path("pipe"));
  EXPECT_THAT(error.message, HasSubstr("it is no file"));
}

TEST_F(AgentProcess, ItsOutputIsAppendedToAndBlocks) {
  const auto process = Start(
      "import fcntl\n"
      "flags = fcntl.fcntl(1, fcntl.F_GETFL)\n"
      "print(bool(flags & os.O_APPEND), bool(flags & os.O_NONBLOCK))\n");
  End(*process);
  EXPECT_EQ(folder_.Read("logs/out.txt"), "True False\n");
}

TEST(AgentFrames, FailuresBecomeOneLine) {
  const std::optional<FailureText> failure = ParseFailure(
      R"({"kind":"Exception","type":"ValueError","message":"bad\nrow","location":"score.py:31"})");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "ValueError: bad\\nrow (score.py:31)");
  EXPECT_FALSE(failure->fatal);
  EXPECT_FALSE(ParseFailure("[1]"));
  EXPECT_FALSE(ParseFailure("{"));
  EXPECT_FALSE(ParseFailed("short"));
  EXPECT_FALSE(ParseResult("short"));
}

TEST(AgentFrames, AResultTellsWhatWasSkipped) {
  std::string body;
  Encoder out(body);
  for (const uint64_t head : {7, 1000, 900, 30, 40, 50}) out.U64(head);
  for (const uint32_t count : {3, 2, 4}) out.U32(count);
  const std::string head = body;
  out.Bytes("rows");
  const std::optional<ResultAnswer> answer = ParseResult(body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->cpu_ns, 900U);
  EXPECT_EQ(answer->waited_ns, 30U);
  EXPECT_EQ(answer->read_ns, 40U);
  EXPECT_EQ(answer->wrote_ns, 50U);
  EXPECT_EQ(answer->items_succeeded, 3U);
  EXPECT_EQ(answer->items_skipped, 2U);
  EXPECT_EQ(answer->row_count, 4U);
  EXPECT_EQ(answer->rows, "rows");
  EXPECT_FALSE(ParseResult(head.substr(1)));
}

TEST(AgentFrames, TheKindOfAFailureTellsItsCause) {
  const auto cause = [](const std::string& kind) {
    return ParseFailed(std::string(48, '\0') + R"({"kind":")" + kind + R"(","type":"x"})")->cause;
  };
  EXPECT_EQ(cause("Exception"), job::Cause::kRun);
  EXPECT_EQ(cause("InputUnreadable"), job::Cause::kInput);
  EXPECT_EQ(cause("Misfit"), job::Cause::kMisfit);
}

TEST(AgentConfigTest, TheEnvironmentOfAWorker) {
  JobSettings job;
  job.output_folder = "/out";
  job.environment = {{"MODE", "fast"}, {"PYTHONPATH", "/mine"}};
  const auto first = WorkerEnvironment({"PATH=/bin", "MODE=slow"}, job, "/package", {2, "MIG-1"});
  EXPECT_THAT(first, ::testing::UnorderedElementsAre(
                         "PATH=/bin", "MODE=fast", "PYTHONPATH=/mine:/package",
                         "AZUREML_BI_OUTPUT_PATH=/out", "AZ_BATCHAI_GPU_COUNT_FOUND=2",
                         "CUDA_VISIBLE_DEVICES=MIG-1"));
  const auto third =
      WorkerEnvironment({"CUDA_VISIBLE_DEVICES=0,1"}, job, "/package", {2, std::nullopt});
  EXPECT_THAT(third, Not(Contains(HasSubstr("CUDA"))));
  const auto hidden =
      WorkerEnvironment({"CUDA_VISIBLE_DEVICES="}, job, "/package", {0, std::nullopt});
  EXPECT_THAT(hidden, Contains("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(hidden, Contains("AZ_BATCHAI_GPU_COUNT_FOUND=0"));
  const auto unknown = WorkerEnvironment({}, job, "/package", {});
  EXPECT_THAT(unknown, Contains("AZ_BATCHAI_GPU_COUNT_FOUND=0"));
  EXPECT_THAT(unknown, Not(Contains(HasSubstr("CUDA"))));
}

constexpr char kRegisterReply[] = R"({
  "runId": "9f", "epoch": 1, "incarnation": 1, "settingsDigest": "ff", "firstProcess": 0,
  "leaseSeconds": 20,
  "job": {"entryScript": "score.py", "arguments": [], "outputFolder": "/out",
          "outputAction": "AppendRow", "loggingLevel": "INFO",
          "processes": 2, "runTimeoutSeconds": 60, "overheadTimeoutSeconds": 600,
          "environment": {}, "python": "python3"MORE}})";

std::string ReplyWith(const std::string& more) {
  std::string reply = kRegisterReply;
  return reply.replace(reply.find("MORE"), 4, more);
}

TEST(AgentConfigTest, TheWorkersKeysBecomePartOfTheStartFrame) {
  const Result<RegisterReply> reply = ParseRegisterReply(ReplyWith(
      R"(, "worker": {"runId": "ns.job", "asyncMode": true, "node": 9, "deep": {"a": [1]}})"));
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_TRUE(reply->registration.async);
  const auto start = nlohmann::json::parse(StartBody(reply->job, 3, 12));
  EXPECT_EQ(start.at("runId"), "ns.job");
  EXPECT_EQ(start.at("asyncMode"), true);
  EXPECT_EQ(start.at("deep").at("a").at(0), 1);
  EXPECT_EQ(start.at("node"), 3);  // the agent's own word wins
  EXPECT_EQ(start.at("process"), "process012");
  EXPECT_EQ(start.at("metrics"), true);
  EXPECT_EQ(start.at("headers"), true);
}

TEST(AgentConfigTest, TheStartFrameStaysAsItIs) {
  const Result<RegisterReply> reply = ParseRegisterReply(ReplyWith(
      R"(, "image": "images.example/i:1", "cacheBytes": 5, "speculation": false,
         "worker": {"runId": "ns.job", "shortReturn": "Fail", "mixedTypes": false})"));
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(StartBody(reply->job, 3, 12),
            R"({"arguments":[],"entryScript":"score.py","headers":true,)"
            R"("image":"images.example/i:1","loggingLevel":"INFO","metrics":true,)"
            R"("mixedTypes":false,"node":3,"outputAction":"AppendRow","outputFolder":"/out",)"
            R"("process":"process012","release":")" +
                std::string(kVersion) +
                R"(","runId":"ns.job","shortReturn":"Fail","stackSignal":60})");
}

TEST(AgentConfigTest, WithStagedSideFilesEachProcessHasAnOutputFolderOfItsOwn) {
  const Result<RegisterReply> reply = ParseRegisterReply(ReplyWith(
      R"(, "staging": "/out/.parallelrun-staged-9f", "worker": {"outputFolders": ["a"]})"));
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_TRUE(reply->registration.staged);
  JobSettings job = reply->job;
  job.arguments = {"--to=" + std::string(job::kOutputMark) + "/a", std::string(job::kOutputMark),
                   "/out"};
  const JobSettings own = ForProcess(job, 12);
  EXPECT_TRUE(own.staging.starts_with("/out/.parallelrun-staged-9f/process012-")) << own.staging;
  EXPECT_EQ(own.output_folder, own.staging + "/out");
  EXPECT_THAT(own.arguments, ::testing::ElementsAre("--to=" + own.output_folder + "/a",
                                                    own.output_folder, "/out"));
  EXPECT_NE(ForProcess(job, 12).staging, own.staging) << "one that is started again";
  const auto start = nlohmann::json::parse(StartBody(own, 3, 12));
  EXPECT_EQ(start.at("staging"), own.staging);
  EXPECT_EQ(start.at("outputFolder"), own.output_folder);
  EXPECT_EQ(start.at("outputFolders").at(0), "a");
  EXPECT_THAT(WorkerEnvironment({}, own, "/package", {}),
              Contains("AZUREML_BI_OUTPUT_PATH=" + own.output_folder));

  EXPECT_FALSE(start.contains("sendsSideFiles"));

  const Result<RegisterReply> store =
      ParseRegisterReply(ReplyWith(R"(, "sideStore": "s3://results/job", "worker": {})"));
  ASSERT_TRUE(store.ok()) << store.error().message;
  EXPECT_TRUE(store->registration.staged);
  EXPECT_EQ(store->job.staging, "") << "where that is on the node, the agent says";
  EXPECT_EQ(store->job.side_store, "s3://results/job");
  EXPECT_TRUE(nlohmann::json::parse(StartBody(store->job, 3, 12)).at("sendsSideFiles"));

  const Result<RegisterReply> direct = ParseRegisterReply(ReplyWith(""));
  EXPECT_FALSE(direct->registration.staged);
  EXPECT_EQ(ForProcess(direct->job, 12).output_folder, "/out");
}

TEST(AgentConfigTest, OptionsOfTheJob) {
  const Result<RegisterReply> none = ParseRegisterReply(ReplyWith(""));
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_FALSE(none->registration.async);
  EXPECT_TRUE(none->registration.speculation);
  EXPECT_EQ(none->registration.lease, seconds(20));
  EXPECT_EQ(none->job.resource_monitor_interval, Duration(0));
  EXPECT_EQ(none->job.processes_per_gpu, 1U);
  EXPECT_EQ(none->job.log_limit, uint64_t{1} << 30);
  const Result<RegisterReply> some = ParseRegisterReply(ReplyWith(
      R"(, "worker": {"asyncMode": false}, "speculation": false,
         "resourceMonitorIntervalSeconds": 20, "processesPerGpu": 3,
         "logLimitBytes": 1048576)"));
  ASSERT_TRUE(some.ok()) << some.error().message;
  EXPECT_FALSE(some->registration.async);
  EXPECT_FALSE(some->registration.speculation);
  EXPECT_EQ(some->job.resource_monitor_interval, seconds(20));
  EXPECT_EQ(some->job.processes_per_gpu, 3U);
  EXPECT_EQ(some->job.log_limit, 1048576U);
  EXPECT_FALSE(ParseRegisterReply(ReplyWith(R"(, "worker": [1])")).ok());
  EXPECT_FALSE(ParseRegisterReply(ReplyWith(R"(, "logLimitBytes": "much")")).ok());
}

TEST(AgentFrames, SideFilesAreAListThatNamesSome) {
  const std::string sequence("\x09\0\0\0\0\0\0\0", 8);
  const std::string list =
      R"({"folder":"process003-1f/9","files":[["a",5,")" + std::string(64, 'a') + "\"]]}";
  const std::optional<SideFilesFrame> frame = ParseSideFiles(sequence + list);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->sequence, 9u);
  EXPECT_EQ(frame->list.folder, "process003-1f/9");
  ASSERT_EQ(frame->list.files.size(), 1u);
  EXPECT_EQ(frame->list.files[0].name, "a");
  for (const std::string& body : {std::string(), sequence, sequence + "{}", list,
                                  sequence + R"({"folder":"../x","files":[]})"}) {
    EXPECT_FALSE(ParseSideFiles(body)) << body;
  }
  std::string out;
  AppendSideFilesSent(out, SideFilesAnswer::kSent, "line");
  EXPECT_EQ(out, std::string("\5\0\0\0\5\1line", 10));
}

TEST(AgentFrames, MetricsAreBoundedObjects) {
  EXPECT_TRUE(IsMetric(R"({"name": "loss", "value": 0.5})"));
  EXPECT_FALSE(IsMetric("[1]"));
  EXPECT_FALSE(IsMetric("{"));
  EXPECT_FALSE(IsMetric("{\"a\": \"" + std::string(job::kMaxMetricBytes, 'x') + "\"}"));
}

TEST(AgentConfigTest, WhatIsMissingIsNamed) {
  const Result<AgentConfig> config = ParseAgentConfig(R"({"url": "http://x", "token": 5})");
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("\"token\""));
  EXPECT_FALSE(ParseAgentConfig("nonsense").ok());
  EXPECT_FALSE(ParseRegisterReply("[]").ok());
}

TEST(AgentConfigTest, WhatIsTheNodesOwnStandsInAFileOfItsOwn) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("agent_config." + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  const std::string own = folder / "node.json";
  const std::string shared = folder / "agent.json";
  std::ofstream(shared) << R"({"url": "http://x", "codeFolder": "c", "workFolder": "w",
                               "pythonPath": "p", "nodeFile": ")"
                        << own << "\"}";
  Result<AgentConfig> config = ReadAgentConfig(shared);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr(own)) << "it is not there";
  std::ofstream(own) << R"({"node": 7, "token": "t"})";
  config = ReadAgentConfig(shared);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->node, 7U);
  EXPECT_EQ(config->token, "t");
  EXPECT_EQ(config->url, "http://x");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace parallelrun::agent
