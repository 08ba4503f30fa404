// The resource monitor: the texts it reads, the lines it writes, and its files.
#include "agent/logs/resource_usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>
#include <utility>

#include "agent/logs/resource_monitor.h"
#include "agent/processes/memory_group.h"
#include "base/files.h"
#include "base/log.h"
#include "base/thread.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

const WallTime kNow{seconds(1'795'252'500)};  // 2026-11-21T09:15:00Z

TEST(ResourceUsage, CpuSinceTheReadingBefore) {
  const CpuTimes before = ParseCpuTimes("cpu  100 0 50 800 50 0 0 0 7 0\ncpu0 1 1\n");
  EXPECT_EQ(before.busy, 150U);
  EXPECT_EQ(before.total, 1000U);
  const CpuTimes now = ParseCpuTimes("cpu  160 0 65 900 75 0 0 0 9 0\n");
  EXPECT_DOUBLE_EQ(CpuPercent(before, now), 37.5);
  EXPECT_EQ(CpuPercent(now, now), 0);
  EXPECT_EQ(CpuPercent(now, before), 0);
  EXPECT_EQ(ParseCpuTimes("nonsense").total, 0U);
}

TEST(ResourceUsage, ALineOfTheNode) {
  NodeUsage usage;
  usage.cpu_percent = 12.34;
  ParseMemInfo("MemTotal:  4194304 kB\nMemFree: 1 kB\nMemAvailable:  1048576 kB\n", usage);
  ParseDiskStats(
      " 254 0 vda 10 0 2048 5 20 0 4096 9 0 0 0\n"
      " 254 1 vda1 9 0 2048 5 20 0 4096 9 0 0 0\n"
      "   7 0 loop0 100 0 2048 5 20 0 4096 9 0 0 0\n"
      " 259 0 nvme0n1 1 0 2048 5 2 0 2048 9 0 0 0\n"
      " 259 1 nvme0n1p1 1 0 2048 5 2 0 2048 9 0 0 0\n",
      usage);
  ParseNetDev(
      "Inter-| Receive | Transmit\n face |bytes packets|bytes\n"
      "    lo: 99999999 1 0 0 0 0 0 0 99999999 1 0 0 0 0 0 0\n"
      "  eth0: 3145728 1 0 0 0 0 0 0 1048576 1 0 0 0 0 0 0\n",
      usage);
  ParseSockets("sockets: used 9\nTCP: inuse 5 orphan 0\nUDP: inuse 2 mem 0\nUDPLITE: inuse 0\n",
               usage);
  ParseSockets("TCP6: inuse 1\nUDP6: inuse 3\n", usage);
  EXPECT_EQ(NodeUsageLine(usage, kNow),
            "2026-11-21T09:15:00Z,12.3,4096.0,1024.0,3072.0,75.0,11,22,2.0,3.0,1.0,3.0,6,5\n");
  const std::string header = kNodeUsageHeader;
  EXPECT_EQ(std::count(header.begin(), header.end(), ','), 13);
  EXPECT_THAT(header, StartsWith("Utc Time,Cpu Percent,Memory Total (MB),Memory Available (MB)"));
}

TEST(ResourceUsage, AProcessWithAHostileName) {
  const auto usage = ParseProcessStat(
      "42 (a) S (b c) R 7 42 42 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 3 0 1000 8388608 512 1", 4096);
  ASSERT_TRUE(usage);
  EXPECT_EQ(usage->pid, 42);
  EXPECT_EQ(usage->name, "a) S (b c");
  EXPECT_EQ(usage->state, 'R');
  EXPECT_EQ(usage->parent, 7);
  EXPECT_EQ(usage->cpu_ticks, 200U);
  EXPECT_EQ(usage->threads, 3U);
  EXPECT_EQ(usage->start_ticks, 1000U);
  ProcessUsage io = *usage;
  ParseProcessIo("rchar: 9\nread_bytes: 1048576\nwrite_bytes: 2097152\n", io);
  EXPECT_EQ(ProcessUsageLine("process007", io, 50, kNow),
            "2026-11-21T09:15:00Z,process007,42,50.0,2.0,8.0,3,1.0,2.0\n");
  io.command = "python3 -c \x1b[31mx";
  const std::string table = ProcessTable({*usage, io}, 100, 2000);
  EXPECT_THAT(table, HasSubstr("COMMAND\n"));
  EXPECT_THAT(table, HasSubstr(" 20.0 "));
  EXPECT_THAT(table, HasSubstr("[a) S (b c]\n"));
  EXPECT_THAT(table, HasSubstr("python3 -c \\x1b[31mx\n"));
  EXPECT_FALSE(ParseProcessStat("42 (short) R 1", 4096));
  EXPECT_FALSE(ParseProcessStat("", 4096));
}

TEST(ResourceUsage, WhatIsBelowAProcess) {
  const auto process = [](int pid, int parent) {
    ProcessUsage usage;
    usage.pid = pid;
    usage.parent = parent;
    return usage;
  };
  // A child may have the lower number.
  EXPECT_THAT(ProcessesBelow({process(1, 0), process(5, 9), process(7, 1), process(9, 7)}, 7),
              testing::ElementsAre(5, 7, 9));
  EXPECT_THAT(ProcessesBelow({}, 7), testing::ElementsAre(7));
}

TEST(ResourceUsage, ALineOfADisk) {
  EXPECT_EQ(DiskUsageLine({"/a,\"b\"", 4 << 20, 1 << 20, 2 << 20}, kNow),
            "2026-11-21T09:15:00Z,\"/a,\"\"b\"\"\",4.0,1.0,2.0,66.7\n");
}

TEST(ResourceUsage, TheContainersMemory) {
  const TempFolder t;
  t.Write("proc/self/cgroup", "0::/pod\n");
  t.Write("sys/fs/cgroup/pod/memory.events", "oom 3\noom_kill 2\n");
  t.Write("sys/fs/cgroup/pod/memory.max", "1048576\n");
  t.Write("sys/fs/cgroup/pod/memory.current", "900000\n");
  t.Write("sys/fs/cgroup/pod/memory.stat", "anon 5\ninactive_file 400000\n");
  const MemoryGroup group(t.path());
  EXPECT_EQ(group.Limit(), 1048576U);
  EXPECT_EQ(group.WorkingSet(), 500000U);
  EXPECT_EQ(group.OomKills(), 2U);
  EXPECT_EQ(MemoryGroup(t.path("none")).Limit(), std::nullopt);
}

TEST(ResourceUsage, WhyTheKernelMayHaveKilled) {
  const TempFolder t;
  t.Write("proc/meminfo", "MemFree: 5 kB\nMemTotal:       8388608 kB\n");
  const std::string peak = "the process had up to 3 GiB, the machine has 8 GiB";
  const MemoryGroup unknown(t.path());
  EXPECT_EQ(
      unknown.WhyKilled(unknown.OomKills(), uint64_t{3} << 30)
          .find(". The usual cause is the kernel's out-of-memory killer: " + peak + ". Lower"),
      0U);
  t.Write("proc/self/cgroup", "0::/pod\n");
  t.Write("sys/fs/cgroup/pod/memory.events", "low 1\noom_kill 2\n");
  const MemoryGroup group(t.path());
  EXPECT_EQ(group.WhyKilled(1, uint64_t{3} << 30)
                .find(" by the kernel's out-of-memory killer: " + peak + ". Lower"),
            0U);
  const std::string other = group.WhyKilled(2, uint64_t{3} << 30);
  EXPECT_EQ(other.find(". The kernel's out-of-memory killer, the usual cause, did not do it"), 0U);
  EXPECT_THAT(other, EndsWith(peak));
}

TEST(ResourceMonitorTest, SamplesAtItsStartAndEnd) {
  const TempFolder t;
  {
    ResourceMonitor monitor(MakeSystemFiles(),
                            {t.path("perf/0"), std::chrono::hours(1), {t.path(), "/nonexistent"}});
    monitor.SetProcess("process000", getpid());
    monitor.SetProcess("process001", 0);  // gone
  }
  const std::string node = t.Read("perf/0/node_resource_usage.csv");
  EXPECT_EQ(std::count(node.begin(), node.end(), '\n'), 3) << node;  // header, first, last
  EXPECT_THAT(node, StartsWith(kNodeUsageHeader));
  const std::string disks = t.Read("perf/0/node_disk_usage.csv");
  EXPECT_EQ(std::count(disks.begin(), disks.end(), '\n'), 3) << disks;
  const std::string processes = t.Read("perf/0/processes_resource_usage.csv");
  EXPECT_THAT(processes, StartsWith(kProcessUsageHeader));
  EXPECT_THAT(processes, HasSubstr(",process000," + std::to_string(getpid()) + ","));
  EXPECT_THAT(processes, Not(HasSubstr("process001")));
  size_t tables = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(t.path("perf/0/os"))) {
    if (!entry.is_regular_file()) continue;
    ++tables;
    EXPECT_THAT(entry.path().string(), MatchesRegex(".*/os/[0-9]{10}/processes_[0-9][0-9]"));
  }
  EXPECT_GE(tables, 1U);
}

// Two samples each.
void Monitor(const FaultFiles& disk) {
  const ResourceMonitor monitor(std::make_shared<FaultFiles>(disk),
                                {"/perf", std::chrono::hours(1), {"/"}});
}

void ExpectTable(const std::string& text, const std::string& header, size_t rows) {
  EXPECT_THAT(text, StartsWith(header));
  EXPECT_THAT(text, EndsWith("\n"));
  std::istringstream lines(text);
  size_t found = 0;
  for (std::string line; std::getline(lines, line); ++found) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','),
              std::count(header.begin(), header.end(), ','))
        << line;
  }
  EXPECT_EQ(found, rows + 1) << text;
}

// Half a row, and the next behind it, would be a row that nobody has measured.
TEST(ResourceMonitorTest, AFullDiskLeavesWholeRows) {
  FaultFiles disk;
  ASSERT_TRUE(disk.MakeFolders("/perf").ok());
  disk.SetCapacity(10);
  Monitor(disk);  // not even a header
  disk.SetCapacity(std::nullopt);
  Monitor(disk);
  disk.SetCapacity(disk.used() + 10);
  Monitor(disk);
  disk.SetCapacity(std::nullopt);
  Monitor(disk);
  ExpectTable(disk.Contents("/perf/node_resource_usage.csv"), kNodeUsageHeader, 4);
  ExpectTable(disk.Contents("/perf/node_disk_usage.csv"), kDiskUsageHeader, 4);
  ExpectTable(disk.Contents("/perf/processes_resource_usage.csv"), kProcessUsageHeader, 0);
}

TEST(ResourceMonitorTest, WhatCannotBeWrittenIsToldOnceAndKeepsNothingElse) {
  FaultFiles disk;
  FaultFiles once;
  ASSERT_TRUE(disk.MakeFolders("/perf").ok());
  ASSERT_TRUE(once.MakeFolders("/perf").ok());
  const std::shared_ptr<spdlog::logger> before = spdlog::default_logger();
  testing::internal::CaptureStderr();
  SetUpLogging(LogFormat::kTree, LogLevel::kInfo);
  disk.SetCapacity(0);
  Monitor(disk);
  once.FailOperation(2, {Code::kInternal, "open /perf/node_resource_usage.csv: EIO"});
  Monitor(once);
  const std::string shown = testing::internal::GetCapturedStderr();
  spdlog::set_default_logger(before);
  EXPECT_THAT(shown, MatchesRegex(".*usage is not written: write /perf/node_resource_usage.csv: "
                                  "the simulated disk is full\n"
                                  ".*usage is not written: open /perf/node_resource_usage.csv: EIO"
                                  "\n.*usage is written again\n"));
  ExpectTable(once.Contents("/perf/node_resource_usage.csv"), kNodeUsageHeader, 1);
  ExpectTable(once.Contents("/perf/node_disk_usage.csv"), kDiskUsageHeader, 2);
}

TEST(ResourceMonitorTest, ItsEndDoesNotWaitForADiskThatHangs) {
  FaultFiles disk;
  ASSERT_TRUE(disk.MakeFolders("/perf").ok());
  disk.Hang("/perf");
  auto files = std::make_shared<FaultFiles>(disk);
  const std::weak_ptr<FaultFiles> kept = files;
  {
    const ResourceMonitor monitor(std::move(files),
                                  {"/perf", std::chrono::hours(1), {}, milliseconds(1)});
    disk.AwaitHanging();
  }
  EXPECT_TRUE(Thread::AnyLeft());
  disk.Hang("");
  while (!kept.expired()) std::this_thread::yield();  // the thread has ended
  EXPECT_TRUE(*disk.Exists("/perf/processes_resource_usage.csv"));
}

TEST(ResourceMonitorTest, OnlyItsOwnProcessesAreShownWithTheirWords) {
  const TempFolder t;
  {
    const ResourceMonitor monitor(MakeSystemFiles(), {t.path("perf/0"), std::chrono::hours(1), {}});
  }
  size_t own = 0;
  size_t others = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(t.path("perf/0/os"))) {
    if (!entry.is_regular_file()) continue;
    std::ifstream table(entry.path());
    int pid = 0;
    std::string line;
    for (std::getline(table, line); std::getline(table, line);) {
      std::istringstream fields(line);
      std::string word;
      fields >> word >> pid;
      for (int i = 0; i < 9; ++i) fields >> word;  // %CPU ... COMMAND
      if (pid == getpid()) {
        ++own;
        EXPECT_THAT(word, testing::EndsWith("unit_agent"));
      } else if (pid == getppid()) {
        ++others;
        EXPECT_THAT(word, StartsWith("[")) << line;
      }
    }
  }
  EXPECT_GE(own, 1U);
  EXPECT_EQ(others, own);
}

}  // namespace
}  // namespace parallelrun::agent
