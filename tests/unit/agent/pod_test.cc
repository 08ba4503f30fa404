// What an agent does because it lives in a pod.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "agent/agent_client.h"
#include "agent/agent_config.h"
#include "agent/bundle.h"
#include "agent/farewell.h"
#include "agent/processes/memory_watch.h"
#include "agent/processes/spawn.h"
#include "base/version.h"
#include "tests/support/disk_files.h"
#include "tests/support/fault_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

TEST(AgentPod, AnAgentKeepsItsName) {
  const auto first = nlohmann::json::parse(RegisterBody("", 0, 0));
  const auto second = nlohmann::json::parse(RegisterBody("run", 0, 2));
  EXPECT_EQ(first["instance"], second["instance"]);
  EXPECT_EQ(first["instance"].get<std::string>().size(), 16U);
  EXPECT_EQ(first["release"], kVersion);
}

TEST(AgentPod, RefusalsAreToldInTheCoordinatorsWords) {
  HttpResponse response;
  response.status = 409;
  response.body = R"({"error": {"code": "Stale", "message": "another agent\nhas the place"}})";
  EXPECT_EQ(FailureWords(Result<HttpResponse>(response)), "409 another agent\\nhas the place");
  response.body = "<html>";
  EXPECT_EQ(FailureWords(Result<HttpResponse>(response)), "409 <html>");
  response.body = R"({"error": {"message": 7}})";
  EXPECT_THAT(FailureWords(Result<HttpResponse>(response)), HasSubstr("409"));
  EXPECT_EQ(FailureWords(Error{Code::kUnavailable, "no route"}), "no route");
}

TEST(AgentPod, WhyACertificateAuthorityCannotBeReadIsTold) {
  const TempFolder t;
  AgentConfig config;
  config.certificate_authority = t.path("none");
  EXPECT_EQ(ClientOptions(config).error().message,
            "the certificate authority: read " + t.path("none") + ": No such file or directory");
  config.certificate_authority = t.path();
  EXPECT_THAT(ClientOptions(config).error().message, HasSubstr("Is a directory"));
  t.Write("empty", "");
  config.certificate_authority = t.path("empty");
  EXPECT_EQ(ClientOptions(config).error().message,
            "the certificate authority " + t.path("empty") + " is empty");
}

TEST(AgentPod, TheBundleIsCopiedWithModesAndMayBeCopiedAgain) {
  const TempFolder t;
  t.Write("bundle/bin/program", std::string(300'000, 'p'));
  t.Write("bundle/python/parallelrun/__init__.py", "");
  t.Write("bundle/lib/ld.so", "loader");
  fs::create_symlink("ld.so", t.path("bundle/lib/libx.so"));
  chmod(t.path("bundle/bin/program").c_str(), 0555);
  for (int round = 0; round < 2; ++round) {
    const Status installed = InstallBundle(t.path("bundle"), t.path("target/deep"));
    ASSERT_TRUE(installed.ok()) << installed.error().message;
    struct stat info {};
    ASSERT_EQ(stat(t.path("target/deep/bin/program").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0555U);
    EXPECT_EQ(info.st_size, 300'000);
    EXPECT_EQ(fs::read_symlink(t.path("target/deep/lib/libx.so")), "ld.so");
    EXPECT_TRUE(t.Exists("target/deep/python/parallelrun/__init__.py"));
    // What a copy that was cut off leaves.
    t.Write("target/deep/bin/program.parallelrun-part", "half");
  }
  EXPECT_FALSE(InstallBundle(t.path("none"), t.path("target")).ok());
  t.Write("taken", "");
  EXPECT_THAT(InstallBundle(t.path("bundle"), t.path("taken")).error().message,
              HasSubstr(t.path("taken")));
}

TEST(AgentPod, TheFarewellIsOneLineInAFileThatIsThere) {
  const TempFolder t;
  LeaveFarewell(DiskFiles(), t.path("none"), "words");
  EXPECT_FALSE(t.Exists("none"));
  t.Write("log", "what was there before, which is longer");
  LeaveFarewell(DiskFiles(), t.path("log"), "two\nlines");
  EXPECT_EQ(t.Read("log"), "two\\nlines\n");
  LeaveFarewell(DiskFiles(), t.path("log"), std::string(100'000, '\1'));
  EXPECT_LE(t.Read("log").size(), 4096U);
}

// The agent is about to end: nobody waits for it for ever.
TEST(AgentPod, AFarewellWaitsForNoReaderOfAPipe) {
  const TempFolder t;
  ASSERT_EQ(mkfifo(t.path("log").c_str(), 0600), 0);
  LeaveFarewell(DiskFiles(), t.path("log"), "words");
}

TEST(AgentPod, AFarewellThatCannotBeWrittenEndsNobody) {
  for (uint64_t operation = 1; operation <= 3; ++operation) {
    FaultFiles disk;
    disk.Put("/dev/log", "what was there before");
    disk.FailOperation(operation, {Code::kInternal, "EIO"});
    LeaveFarewell(disk, "/dev/log", "words");
  }
  FaultFiles full;
  full.Put("/dev/log", "what was there before");
  full.SetCapacity(3);
  LeaveFarewell(full, "/dev/log", "words");
  EXPECT_EQ(full.Contents("/dev/log"), "wor");
}

struct MemoryFolder {
  explicit MemoryFolder(uint64_t limit) {
    t.Write("proc/self/cgroup", "0::/\n");  // a container with a cgroup namespace
    t.Write("sys/fs/cgroup/memory.events", "oom_kill 0\n");
    t.Write("sys/fs/cgroup/memory.max", std::to_string(limit) + "\n");
  }
  void Use(uint64_t all, uint64_t active, uint64_t inactive) const {
    t.Write("sys/fs/cgroup/memory.current", std::to_string(all));
    t.Write("sys/fs/cgroup/memory.stat", "active_file " + std::to_string(active) +
                                             "\ninactive_file " + std::to_string(inactive) + "\n");
  }
  TempFolder t;
};

TEST(AgentMemoryWatch, CountsWhatCannotBeReclaimed) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const MemoryFolder folder(4 * kGiB);
  folder.Use(kGiB, 0, 0);
  const MemoryGroup group(folder.t.path());
  const MemoryWatch watch(group);
  EXPECT_TRUE(watch.on());
  EXPECT_FALSE(watch.Short());
  folder.Use(4 * kGiB, 2 * kGiB, kGiB);  // the page cache may fill the container
  EXPECT_FALSE(watch.Short());
  folder.Use(4 * kGiB - 1, 4096, 4096);
  ASSERT_TRUE(watch.Short());
  EXPECT_THAT(*watch.Short(), HasSubstr("the container's limit is 4 GiB, 4 GiB are in use"));
}

TEST(AgentMemoryWatch, WithoutALimitItIsOff) {
  const TempFolder t;
  const MemoryGroup group(t.path());
  EXPECT_FALSE(MemoryWatch(group).on());
  EXPECT_FALSE(MemoryWatch(group).Short());
}

TEST(AgentMemoryWatch, TheReserveFitsSmallAndLargeContainers) {
  constexpr uint64_t mebibyte = uint64_t{1} << 20;
  EXPECT_EQ(MemoryReserve(32 * mebibyte), 8 * mebibyte);
  EXPECT_EQ(MemoryReserve(256 * mebibyte), 16 * mebibyte);
  EXPECT_EQ(MemoryReserve(4096 * mebibyte), 128 * mebibyte);
  EXPECT_EQ(MemoryReserve(1024 * 1024 * mebibyte), 512 * mebibyte);
}

// A child that leads its own group, uses `bytes`, and waits to be killed.
pid_t Child(size_t bytes) {
  int ready[2];
  if (pipe(ready) != 0) return -1;
  const pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0);
    char* memory = static_cast<char*>(malloc(bytes));
    for (size_t i = 0; i < bytes; i += 512) memory[i] = 1;
    if (write(ready[1], memory, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  close(ready[1]);
  return pid;
}

TEST(AgentMemoryWatch, TheLargestGroupIsFound) {
  const pid_t small = Child(size_t{1} << 20);
  const pid_t large = Child(size_t{64} << 20);
  EXPECT_EQ(MemoryWatch::Largest({small, large}), large);
  EXPECT_EQ(MemoryWatch::Largest({small}), small);
  EXPECT_EQ(MemoryWatch::Largest({}), std::nullopt);
  for (const pid_t pid : {small, large}) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

TEST(AgentPod, OrphansAreReapedAndOnesOwnAreNot) {
  const pid_t own = Child(1);
  const pid_t orphan = Child(1);
  for (const pid_t pid : {own, orphan}) kill(pid, SIGKILL);
  siginfo_t info{};
  for (const pid_t pid : {own, orphan}) {
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  }
  ReapOrphans([](pid_t) { return true; });
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(own), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(waitpid(own, nullptr, 0), own);
  ReapOrphans([](pid_t) { return false; });
  EXPECT_EQ(waitpid(orphan, nullptr, WNOHANG), -1);
}

}  // namespace
}  // namespace parallelrun::agent
