#include "cli/cluster/kubectl.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/processes/spawn.h"
#include "base/memory_file.h"
#include "base/small_file.h"

namespace parallelrun::cli {
namespace {

constexpr size_t kMostOutput = size_t{16} << 20;

constexpr char kFileName[] = "parallelrun-kubectl";

constexpr int kSignalled = 128;  // as a shell reports it

Result<int> StatusOf(pid_t pid, const std::string& program) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoError(errno, "wait for " + program);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

Result<int> Run(const std::vector<std::string>& words, int input, int output) {
  std::vector<char*> arguments;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): exec does not write to them
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  if (output != STDOUT_FILENO) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  // Ctrl-C is for kubectl too, where an Interruption keeps it from us.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error == ENOENT) {
    return Error{Code::kNotFound, words[0] + " is not on the path: install it"};
  }
  if (error != 0) return ErrnoError(error, "start " + words[0]);
  return StatusOf(pid, words[0]);
}

// To the end of the pipe.
Status Pass(int pipe, const Interruption& interruption, const TakeBytes& take) {
  std::string chunk(size_t{1} << 16, '\0');
  while (true) {
    std::array<pollfd, 2> ready = {pollfd{pipe, POLLIN, 0}, pollfd{interruption.fd(), POLLIN, 0}};
    if (poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR)
      return ErrnoError(errno, "poll");
    if (interruption.came()) return Error{Code::kUnavailable, "interrupted"};
    if (ready[0].revents == 0) continue;
    const ssize_t n = read(pipe, chunk.data(), chunk.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "read what kubectl says");
    if (n == 0) return {};
    const Status taken = take(std::string_view(chunk.data(), static_cast<size_t>(n)));
    if (!taken.ok()) return taken;
  }
}

}  // namespace

std::vector<std::string> KubectlWhere::Words() const {
  std::vector<std::string> words = {"kubectl"};
  if (!context.empty()) words.push_back("--context=" + context);
  if (!name_space.empty()) words.push_back("--namespace=" + name_space);
  return words;
}

Result<int> RunKubectl(const std::vector<std::string>& words, const std::string& input) {
  const Result<Fd> file = MemoryFile(kFileName, input);
  if (!file.ok()) return file.error();
  return Run(words, file->get(), STDOUT_FILENO);
}

Result<KubectlAnswer> AskKubectl(const std::vector<std::string>& words, const std::string& text) {
  const Result<Fd> input = MemoryFile(kFileName, text);
  if (!input.ok()) return input.error();
  const Result<Fd> output = MemoryFile(kFileName, "");
  if (!output.ok()) return output.error();
  const Result<int> status = Run(words, input->get(), output->get());
  if (!status.ok()) return status.error();
  Result<std::string> said =
      ReadRange(output->get(), 0, kMostOutput + 1, "what " + words[0] + " says");
  if (!said.ok()) return said.error();
  if (said->size() > kMostOutput) {
    return Error{Code::kInvalid, words[0] + " says more than 16 MiB"};
  }
  return KubectlAnswer{*status, *std::move(said)};
}

Result<int> StreamKubectl(const std::vector<std::string>& words, const Interruption& interruption,
                          const TakeBytes& take) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoError(errno, "make a pipe");
  const Fd said(ends[0]);
  Fd says(ends[1]);
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Result<pid_t> pid =
      agent::Spawn({words, agent::OwnEnvironment(), ".", {null.get(), says.get(), STDERR_FILENO}});
  if (!pid.ok()) return pid.error();
  says.Close();
  const Status passed = Pass(said.get(), interruption, take);
  if (!passed.ok()) kill(-*pid, SIGKILL);
  Result<int> status = StatusOf(*pid, words[0]);
  if (!passed.ok()) return passed.error();
  return status;
}

}  // namespace parallelrun::cli
