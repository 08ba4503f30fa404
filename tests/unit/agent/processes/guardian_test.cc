#include "agent/processes/guardian.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

namespace parallelrun::agent {
namespace {

// Runs Guard in a forked process; the test holds the writing end of the watch pipe, and the
// reading end of a pipe whose writing end every descendant inherits: its end of file means that
// all of them are gone.
class Guarded {
 public:
  explicit Guarded(const std::string& script) {
    EXPECT_EQ(pipe2(watch_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(life_.data(), O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      close(watch_[1]);
      close(life_[0]);
      fcntl(life_[1], F_SETFD, 0);
      _exit(Guard(watch_[0],
                  {"/bin/sh", "-c", "exec 8>&" + std::to_string(life_[1]) + "; " + script}));
    }
    close(watch_[0]);
    close(life_[1]);
  }
  ~Guarded() {
    CloseWatch();
    close(life_[0]);
    if (pid_ > 0) Wait();
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  void CloseWatch() {
    if (watch_[1] >= 0) close(watch_[1]);
    watch_[1] = -1;
  }
  pid_t pid() const { return pid_; }
  // One byte that the script wrote to descriptor 8; false at the end of file.
  bool ReadByte() {
    pollfd fd{life_[0], POLLIN, 0};
    char byte = 0;
    if (poll(&fd, 1, 20'000) != 1) ADD_FAILURE() << "nothing came";
    return read(life_[0], &byte, 1) == 1;
  }
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = -1;
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

 private:
  std::array<int, 2> watch_{-1, -1};
  std::array<int, 2> life_{-1, -1};
  pid_t pid_ = -1;
};

TEST(AgentGuardian, ExitsWithTheStatusOfTheCommand) {
  EXPECT_EQ(Guarded("exit 7").Wait(), 7);
  EXPECT_EQ(Guarded("kill -11 $$").Wait(), 128 + 11);
}

TEST(AgentGuardian, KillsSessionsOfTheirOwnWhenTheCommandEnds) {
  Guarded guarded(
      "trap 'exit 4' USR1; setsid sh -c 'setsid sleep 60 & echo -n x >&8; kill -USR1 $0; sleep 60' "
      "$$ & while :; do sleep 0.01; done");
  EXPECT_TRUE(guarded.ReadByte());
  EXPECT_FALSE(guarded.ReadByte());  // nobody is left
  EXPECT_EQ(guarded.Wait(), 4);
}

TEST(AgentGuardian, KillsAllWhenThePipeCloses) {
  Guarded guarded(
      "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM; echo -n x >&8; sleep 60; sleep 60' & "
      "sleep 60; sleep 60");
  EXPECT_TRUE(guarded.ReadByte());
  guarded.CloseWatch();
  EXPECT_FALSE(guarded.ReadByte());
  EXPECT_EQ(guarded.Wait(), 128 + SIGKILL);
}

TEST(AgentGuardian, KillsWhatKeepsForking) {
  Guarded guarded(
      "f() { while :; do setsid sh -c 'sleep 0.01' & sleep 0.01; done; }; "
      "(f) & (f) & echo -n x >&8; sleep 60");
  EXPECT_TRUE(guarded.ReadByte());
  guarded.CloseWatch();
  EXPECT_FALSE(guarded.ReadByte());
  EXPECT_EQ(guarded.Wait(), 128 + SIGKILL);
}

TEST(AgentGuardian, PassesSigtermOn) {
  Guarded guarded("trap 'exit 9' TERM; echo -n x >&8; while :; do sleep 0.01; done");
  EXPECT_TRUE(guarded.ReadByte());
  kill(guarded.pid(), SIGINT);  // ignored
  kill(guarded.pid(), SIGTERM);
  EXPECT_EQ(guarded.Wait(), 9);
}

TEST(AgentGuardian, ACommandThatIsNotThere) {
  std::array<int, 2> watch{};
  ASSERT_EQ(pipe2(watch.data(), O_CLOEXEC), 0);
  const pid_t pid = fork();
  if (pid == 0) _exit(Guard(watch[0], {"/no/such/program"}));
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WEXITSTATUS(status), 127);
  close(watch[0]);
  close(watch[1]);
}

}  // namespace
}  // namespace parallelrun::agent
