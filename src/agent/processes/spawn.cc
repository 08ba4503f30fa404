#include "agent/processes/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace parallelrun::agent {
namespace {

// What the child tells when it cannot go on.
struct ChildError {
  enum Stage : int { kSetUp, kFolder, kExecute };
  int stage;
  int error;
};

Result<std::string> FindProgram(const SpawnSpec& spec) {
  const std::string& name = spec.command.front();
  if (name.find('/') != std::string::npos) return name;
  std::string_view path = "/usr/local/bin:/usr/bin:/bin";
  for (const std::string& entry : spec.environment) {
    if (entry.starts_with("PATH=")) path = std::string_view(entry).substr(5);
  }
  while (!path.empty()) {
    const std::string folder(path.substr(0, path.find(':')));
    path.remove_prefix(std::min(path.size(), folder.size() + 1));
    const std::string file = folder + "/" + name;
    if (!folder.empty() && access(file.c_str(), X_OK) == 0) return file;
  }
  return Error{Code::kNotFound, name +
                                    " is not in the PATH: use an image that has it, or name "
                                    "another one in spec.environment.python"};
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Everything from here to the exec runs in the forked child of a program with threads: system
// calls only, no allocation, no locks.
struct Child {
  pid_t parent;
  const char* program;
  char* const* command;
  char* const* environment;
  const char* folder;
  const int* descriptors;
  int descriptor_count;
  int errors;  // close-on-exec
  int end_signal;
};

[[noreturn]] void Die(const Child& child, int stage) {
  const ChildError error{stage, errno};
  const ssize_t ignored = write(child.errors, &error, sizeof(error));
  static_cast<void>(ignored);
  _exit(127);
}

void CloseOnExecFrom(int first) {
  if (syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for (int fd = first; fd < 1024; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);  // an older kernel
}

[[noreturn]] void RunChild(const Child& child) {
  prctl(PR_SET_PDEATHSIG, child.end_signal);
  if (getppid() != child.parent) _exit(127);  // it had died before that
  setpgid(0, 0);
  for (int signo = 1; signo < NSIG; ++signo) signal(signo, SIG_DFL);
  for (int i = 0; i < child.descriptor_count; ++i) {
    if (dup2(child.descriptors[i], i) < 0) Die(child, ChildError::kSetUp);
  }
  CloseOnExecFrom(child.descriptor_count);
  if (chdir(child.folder) != 0) Die(child, ChildError::kFolder);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execve(child.program, child.command, child.environment);
  Die(child, ChildError::kExecute);
}

Error Describe(const ChildError& error, const SpawnSpec& spec, const std::string& program) {
  switch (error.stage) {
    case ChildError::kFolder: return ErrnoError(error.error, "enter " + spec.folder);
    case ChildError::kExecute: return ErrnoError(error.error, "execute " + program);
    default: return ErrnoError(error.error, "prepare " + program);
  }
}

Error CannotFork(int error, const std::string& program) {
  Error why = ErrnoError(error, "start " + program);
  if (error == EAGAIN) why.message += std::string(": ") + kNoMoreProcesses;
  return why;
}

}  // namespace

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

Result<pid_t> Spawn(const SpawnSpec& spec) {
  const Result<std::string> program = FindProgram(spec);
  if (!program) return program.error();

  // The descriptors are first moved above the places where they are to end up.
  std::vector<int> moved;
  std::array<int, 2> errors{-1, -1};
  Status status;
  for (const int fd : spec.descriptors) {
    const int above = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(spec.descriptors.size()) + 1);
    if (above < 0) {
      status = ErrnoError(errno, "duplicate a descriptor");
      break;
    }
    moved.push_back(above);
  }
  if (status.ok() && pipe2(errors.data(), O_CLOEXEC) != 0) status = ErrnoError(errno, "pipe");
  pid_t pid = -1;
  ChildError child_error{};
  if (status.ok()) {
    const int high = fcntl(errors[1], F_DUPFD_CLOEXEC, static_cast<int>(moved.size()) + 1);
    const std::vector<char*> command = Pointers(spec.command);
    const std::vector<char*> environment = Pointers(spec.environment);
    const Child child{getpid(),
                      program->c_str(),
                      command.data(),
                      environment.data(),
                      spec.folder.c_str(),
                      moved.data(),
                      static_cast<int>(moved.size()),
                      high,
                      spec.end_signal};
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // no handler of ours may run in the child
    pid = fork();
    if (pid == 0) RunChild(child);
    const int fork_error = errno;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    close(high);
    close(errors[1]);
    if (pid < 0) {
      status = CannotFork(fork_error, *program);
    } else {
      setpgid(pid, pid);  // whoever comes first
      ssize_t n = 0;
      do {
        n = read(errors[0], &child_error, sizeof(child_error));
      } while (n < 0 && errno == EINTR);
      if (n == sizeof(child_error)) {
        waitpid(pid, nullptr, 0);
        status = Describe(child_error, spec, *program);
      }
    }
    close(errors[0]);
  }
  for (const int fd : moved) close(fd);
  if (!status.ok()) return status.error();
  return pid;
}

void ReapOrphans(const std::function<bool(pid_t)>& is_ours) {
  for (;;) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    // One of ours that has ended since it was asked for: its signal is on the way.
    if (is_ours(info.si_pid)) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace parallelrun::agent
