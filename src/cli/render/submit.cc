#include "cli/render/submit.h"

#include <spawn.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "base/error.h"
#include "cli/run/local_run.h"

namespace parallelrun {
namespace {

int Refuse(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  return kExitUsage;
}

// Runs it with `input` as its standard input; its output goes where ours does.
Result<int> Run(const std::vector<std::string>& words, const std::string& input) {
  // A file and not a pipe: kubectl may end before it has read all.
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), &std::fclose);
  if (file == nullptr || std::fwrite(input.data(), 1, input.size(), file.get()) != input.size() ||
      std::fflush(file.get()) != 0 || std::fseek(file.get(), 0, SEEK_SET) != 0) {
    return ErrnoError(errno, "keep the job in a temporary file");
  }
  std::vector<char*> arguments;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): exec does not write to them
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fileno(file.get()), STDIN_FILENO);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) {
    return Error{Code::kNotFound,
                 words[0] +
                     " is not on the path: install it, or take the output of `parallelrun "
                     "render` to where it is"};
  }
  if (error != 0) return ErrnoError(error, "start " + words[0]);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return ErrnoError(errno, "wait for " + words[0]);
  }
  constexpr int kSignalled = 128;  // as a shell reports it
  return WIFEXITED(status) ? WEXITSTATUS(status) : kSignalled + WTERMSIG(status);
}

}  // namespace

int Submit(const SubmitRequest& request) {
  const Result<RenderedJob> rendered = RenderJob(request.render);
  if (!rendered.ok()) return Refuse(rendered.error().message);
  for (const std::string& note : rendered->notes) std::fprintf(stderr, "%s\n", note.c_str());
  std::vector<std::string> words = {"kubectl"};
  std::string where;
  const auto pass = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    words.push_back(fmt::format("--{}={}", flag, value));
    where += fmt::format(" --{}={}", flag, value);
  };
  pass("context", request.context);
  pass("namespace", request.name_space.empty() ? rendered->name_space : request.name_space);
  words.insert(words.end(), {"apply", "--server-side", "--filename=-"});
  if (request.force_conflicts) words.emplace_back("--force-conflicts");
  const Result<int> status = Run(words, rendered->text);
  if (!status.ok()) return Refuse(status.error().message);
  if (*status != 0) return *status;
  const std::string& name = rendered->name;
  std::printf("watch it:     kubectl%s get prj %s --watch\n", where.c_str(), name.c_str());
  std::printf("its events:   kubectl%s describe prj %s\n", where.c_str(), name.c_str());
  std::printf(
      "cancel it:    kubectl%s patch prj %s --type=merge -p '{\"spec\":{\"cancel\":true}}'\n",
      where.c_str(), name.c_str());
  return kExitOk;
}

}  // namespace parallelrun
