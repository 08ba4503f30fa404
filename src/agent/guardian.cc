#include "agent/guardian.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

namespace parallelrun {
namespace {

constexpr int kKillSeconds = 10;
constexpr int kCannotStart = 127;

struct ProcessEntry {
  pid_t pid;
  pid_t parent;
};

// /proc/<pid>/stat is "pid (name) state parent …", and the name may hold anything.
pid_t ParentOf(pid_t pid) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 512> text{};
  const ssize_t n = read(fd, text.data(), text.size() - 1);
  close(fd);
  if (n <= 0) return 0;
  const char* name_end = std::strrchr(text.data(), ')');
  pid_t parent = 0;
  // NOLINTNEXTLINE(cert-err34-c): the kernel's own number
  if (name_end == nullptr || std::sscanf(name_end + 1, " %*c %d", &parent) != 1) return 0;
  return parent;
}

std::vector<ProcessEntry> AllProcesses() {
  std::vector<ProcessEntry> all;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return all;
  while (const dirent* entry = readdir(proc)) {
    const auto pid =
        static_cast<pid_t>(std::atoi(entry->d_name));  // NOLINT(cert-err34-c): 0 for names
    if (pid <= 0) continue;
    const pid_t parent = ParentOf(pid);
    if (parent > 0) all.push_back({pid, parent});
  }
  closedir(proc);
  return all;
}

// Every living process below this one: orphans too, because this process is their subreaper.
std::set<pid_t> Descendants() {
  const std::vector<ProcessEntry> all = AllProcesses();
  std::set<pid_t> found{getpid()};
  for (size_t before = 0; before != found.size();) {
    before = found.size();
    for (const ProcessEntry& entry : all) {
      if (found.contains(entry.parent)) found.insert(entry.pid);
    }
  }
  found.erase(getpid());
  return found;
}

// Reaps what has ended; false once there is no child left. Keeps the status of `child`.
bool Reap(pid_t child, int& status) {
  for (;;) {
    int one = 0;
    const pid_t pid = waitpid(-1, &one, WNOHANG);
    if (pid == 0) return true;
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return false;
    if (pid == child) status = one;
  }
}

int64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

void KillAll(pid_t child, int& status) {
  const int64_t deadline = NowMs() + kKillSeconds * 1000;
  while (Reap(child, status) && NowMs() < deadline) {
    // Stopped first, until a look finds no new one: what is stopped cannot fork away.
    std::set<pid_t> stopped;
    for (bool more = true; more && NowMs() < deadline;) {
      more = false;
      for (const pid_t pid : Descendants()) {
        if (!stopped.insert(pid).second) continue;
        kill(pid, SIGSTOP);
        more = true;
      }
    }
    for (const pid_t pid : stopped) kill(pid, SIGKILL);
    poll(nullptr, 0, 1);
  }
}

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

int ExitStatus(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int Guard(int watch_fd, const std::vector<std::string>& command) {
  if (command.empty() || fcntl(watch_fd, F_SETFD, FD_CLOEXEC) != 0) {
    std::fprintf(stderr, "guard: needs a command, and an open pipe as --watch\n");
    return kCannotStart;
  }
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signo : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signo);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  const pid_t self = getpid();
  const pid_t child = fork();
  if (child == 0) RunCommand(command, self);
  if (child < 0 || signal_fd < 0) {
    std::fprintf(stderr, "guard: cannot start: %s\n", std::strerror(errno));
    if (child > 0) kill(child, SIGKILL);
    return kCannotStart;
  }

  int status = -1;  // no wait status is negative
  bool passed_on = false;
  while (status == -1) {
    std::array<pollfd, 2> fds{pollfd{watch_fd, POLLIN, 0}, pollfd{signal_fd, POLLIN, 0}};
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    signalfd_siginfo info{};
    while (read(signal_fd, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGTERM || passed_on) continue;
      passed_on = true;
      kill(child, SIGTERM);
    }
    Reap(child, status);
    if (fds[0].revents == 0) continue;
    std::array<char, 64> ignored{};
    const ssize_t n = read(watch_fd, ignored.data(), ignored.size());
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) break;
  }
  KillAll(child, status);
  return status == -1 ? 128 + SIGKILL : ExitStatus(status);
}

}  // namespace parallelrun
