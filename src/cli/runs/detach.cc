#include "cli/runs/detach.h"

#include <fcntl.h>
#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "agent/processes/spawn.h"
#include "base/escape.h"
#include "cli/run/continue_command.h"
#include "cli/run/local_run.h"
#include "cli/run/programs.h"

namespace parallelrun::cli {
namespace {

constexpr char kVariable[] = "PARALLELRUN_DETACHED";
constexpr int kParent = 3;  // the child's end
constexpr char kSaid[] = "/said.txt";

std::vector<std::string> WithoutDetach(const std::vector<std::string>& words) {
  std::vector<std::string> own = {words.begin() + 1, words.end()};
  const auto end = std::find(own.begin(), own.end(), "--");
  own.erase(std::remove(own.begin(), end, "--detach"), end);
  return own;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// All of a file, from its begin. What cannot be written is lost: it was for people.
void Copy(int from, int to) {
  std::array<char, 65536> bytes{};
  off_t offset = 0;
  for (ssize_t n = 0; (n = pread(from, bytes.data(), bytes.size(), offset)) > 0; offset += n) {
    if (write(to, bytes.data(), static_cast<size_t>(n)) != n) return;
  }
}

Result<pid_t> StartSession(std::vector<std::string> command, int parent, int said) {
  std::vector<std::string> environment = agent::OwnEnvironment();
  environment.push_back(std::string(kVariable) + "=1");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, said, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, parent, kParent);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  pid_t pid = 0;
  const std::vector<char*> words = Pointers(command);
  const std::vector<char*> variables = Pointers(environment);
  const int error =
      posix_spawn(&pid, words[0], &actions, &attributes, words.data(), variables.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return ErrnoError(error, "start " + Printable(command[0], 1000));
  return pid;
}

}  // namespace

int Detach(const std::vector<std::string>& words, const std::string& output) {
  const Result<Programs> programs = FindPrograms();
  if (!programs.ok()) {
    fmt::print(stderr, "{}\n", programs.error().message);
    return kExitUsage;
  }
  const std::string program =
      std::filesystem::path(programs->coordinator).parent_path() / "parallelrun";
  std::array<int, 2> ends{};
  const Fd said(memfd_create("parallelrun-said", MFD_CLOEXEC));
  if (!said.ok() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fmt::print(stderr, "{}\n", ErrnoError(errno, "make a socket").message);
    return kExitUsage;
  }
  const Fd ours(ends[0]);
  Fd theirs(fcntl(ends[1], F_DUPFD_CLOEXEC, 16));  // not already where the child wants it
  close(ends[1]);
  const Result<pid_t> run =
      StartSession(programs->Command(program, WithoutDetach(words)), theirs.get(), said.get());
  theirs.Close();
  if (!run.ok()) {
    fmt::print(stderr, "{}\n", run.error().message);
    return kExitUsage;
  }
  char begun = 0;
  ssize_t n = 0;
  while ((n = read(ours.get(), &begun, 1)) < 0 && errno == EINTR) {
  }
  std::fflush(stdout);
  Copy(said.get(), STDOUT_FILENO);
  if (n == 1) {
    const std::string out = ForShell(output);
    fmt::print(
        "the run goes on in the background, as process {}\n  parallelrun attach {}\n"
        "  parallelrun stop {}\n",
        *run, out, out);
    return kExitOk;
  }
  int status = 0;
  waitpid(*run, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed;
}

DetachedRun::DetachedRun() {
  if (getenv(kVariable) == nullptr) return;
  unsetenv(kVariable);
  struct stat facts {};
  if (fstat(kParent, &facts) != 0 || !S_ISSOCK(facts.st_mode)) return;  // somebody else's variable
  fcntl(kParent, F_SETFD, FD_CLOEXEC);
  parent_ = Fd(kParent);
}

Status DetachedRun::Begun(const std::string& state_folder) {
  if (!parent_.ok()) return {};
  std::fflush(stdout);
  const std::string path = state_folder + kSaid;
  const Fd file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.ok()) return ErrnoError(errno, "write " + Printable(path, 1000));
  const char begun = 1;
  // Before the parent reads on: what is said from now on is not for it.
  Copy(STDOUT_FILENO, file.get());
  dup2(file.get(), STDERR_FILENO);
  dup2(file.get(), STDOUT_FILENO);
  const bool heard = send(parent_.get(), &begun, 1, MSG_NOSIGNAL) == 1;
  parent_.Close();
  if (heard) return {};
  return Error{Code::kUnavailable, "the command that started this run was ended before it began"};
}

}  // namespace parallelrun::cli
