#include "agent/processes/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "agent/processes/process_tree.h"
#include "agent/processes/spawn.h"
#include "base/time.h"

namespace parallelrun::agent {
namespace {

constexpr Duration kKillDescendantsLimit = seconds(10);
constexpr int kForkSeconds = 60;
constexpr int kCannotStart = 127;

// `parent` is what getppid said before the fork: if it says something else, the parent is gone.
[[noreturn]] void RunCommand(const std::vector<std::string>& command, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kCannotStart);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "guard: cannot execute %s: %s\n", arguments[0], std::strerror(errno));
  _exit(kCannotStart);
}

// While others hold all the processes that there may be, waits for one, for a while.
pid_t Fork(int watch_fd) {
  for (int seconds_left = kForkSeconds;; --seconds_left) {
    const pid_t child = fork();
    if (child >= 0 || errno != EAGAIN || seconds_left == 0) return child;
    pollfd unwanted{watch_fd, POLLIN, 0};
    if (poll(&unwanted, 1, 1000) != 0) return child;
  }
}

void CloseRange(unsigned first, unsigned last) {
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
  for (unsigned fd = first; fd <= std::min(last, 1023U); ++fd) close(static_cast<int>(fd));
}

// What else was inherited is the command's: a token must not stay in an open descriptor.
void CloseAllBut(int one, int other) {
  const auto [low, high] = std::minmax({static_cast<unsigned>(one), static_cast<unsigned>(other)});
  CloseRange(STDERR_FILENO + 1, low - 1);
  CloseRange(low + 1, high - 1);
  CloseRange(high + 1, ~0U);
}

int ExitStatus(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int Guard(int watch_fd, const std::vector<std::string>& command) {
  if (command.empty() || fcntl(watch_fd, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr, "guard: needs a command, and an open pipe as --watch\n");
    return kCannotStart;
  }
  // Until the fork it has the descriptor of the agent's configuration, where the token is.
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signo : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCONT}) {
    sigaddset(&signals, signo);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t self = getpid();
  const pid_t child = Fork(watch_fd);
  if (child == 0) RunCommand(command, self);
  if (child < 0 || signal_fd < 0) {
    std::fprintf(stderr, "guard: cannot start: %s\n",
                 errno == EAGAIN ? kNoMoreProcesses : std::strerror(errno));
    if (child > 0) kill(child, SIGKILL);
    return kCannotStart;
  }
  CloseAllBut(watch_fd, signal_fd);

  int status = -1;  // no wait status is negative
  const OnEnd ended = [&status, child](pid_t pid, int how) {
    if (pid == child) status = how;
  };
  bool passed_on = false;
  while (status == -1) {
    std::array<pollfd, 2> fds{pollfd{watch_fd, POLLIN, 0}, pollfd{signal_fd, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    signalfd_siginfo info{};
    while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
      // Of these two, one that comes takes away the other that waits.
      if (info.ssi_signo == SIGTSTP || info.ssi_signo == SIGCONT) {
        kill(child, static_cast<int>(info.ssi_signo));
      }
      if (info.ssi_signo != SIGTERM || passed_on) continue;
      passed_on = true;
      kill(child, SIGTERM);
    }
    ReapChildren(ended);
    if (fds[0].revents == 0) continue;
    std::array<char, 64> ignored{};
    const ssize_t n = read(watch_fd, ignored.data(), ignored.size());
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) break;
  }
  KillDescendants(kKillDescendantsLimit, ended);
  return status == -1 ? 128 + SIGKILL : ExitStatus(status);
}

}  // namespace parallelrun::agent
