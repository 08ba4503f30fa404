#include "cli/debug/debug_command.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "agent/agent_config.h"
#include "agent/processes/spawn.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/memory_file.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"
#include "cli/run/programs.h"
#include "cli/runs/run_record.h"
#include "coordinator/start/config.h"
#include "job/work_objects.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

// Descriptors of start_debug.py.
constexpr int kStart = 3;
constexpr int kWork = 4;

struct Prepared {
  std::string python;
  std::string package;  // folder of the Python package
  std::string code;
  std::string folder;  // for what the script writes; start_debug.py removes it
  std::string start;   // body of the start frame
  FoundWork work;
  std::vector<std::string> environment;
};

Result<std::string> MakeFolder() {
  std::error_code error;
  std::string name = fs::temp_directory_path(error) / "parallelrun-debug-XXXXXX";
  if (error || mkdtemp(name.data()) == nullptr) {
    return ErrnoError(errno, "make a folder like " + Printable(name, 1000));
  }
  return name;
}

Result<agent::JobSettings> SettingsOf(const RunRecord& record,
                                      const coordinator::JobLayout& layout) {
  coordinator::CoordinatorConfig config;
  config.job = record.job;
  config.volumes = record.volumes;
  config.script_folder_first = record.script_folder_first;
  config.http.listen_fd = 0;  // as on one machine, and not in a pod
  const Result<std::string> job = coordinator::AgentJob(config, layout);
  if (!job.ok()) return job.error();
  return agent::ParseJobSettings(*job);
}

Result<Prepared> Prepare(const DebugRequest& request) {
  const Result<Programs> programs = FindPrograms();
  if (!programs.ok()) return programs.error();
  const Result<std::string> state = FindStateFolder(request.target);
  if (!state.ok()) return state.error();
  const Result<RunRecord> record = ReadRunRecord(*state);
  if (!record.ok()) return record.error();
  Result<coordinator::JobLayout> layout = coordinator::LayOut(record->job, record->volumes);
  if (!layout.ok()) return layout.error();
  Prepared prepared;
  prepared.code = request.code.empty() ? record->code : Absolute(fs::current_path(), request.code);
  const Result<std::string> script = CheckCode(prepared.code, record->job.spec.entry_script);
  if (!script.ok()) return script.error();
  Result<FoundWork> work = FindWork(*MakeSystemFiles(), *state, layout->inputs, request.wanted);
  if (!work.ok()) return work.error();
  if (job::NamesObjects(work->work)) {
    return Error{Code::kInvalid,
                 "the mini-batch is of an input in a store, which debug cannot fetch "
                 "yet: copy its objects into a folder, and run the script on that"};
  }
  if (!layout->side_inputs.empty()) {
    return Error{Code::kInvalid,
                 "the side input " + Printable(layout->side_inputs.front().name, 100) +
                     " lies in a store, which debug cannot fetch yet: copy it into a folder, and "
                     "run the script with that on a volume"};
  }
  prepared.work = std::move(*work);
  Result<std::string> folder = MakeFolder();
  if (!folder.ok()) return folder.error();
  prepared.folder = std::move(*folder);
  layout->output_folder = layout->placeholders["output"] = prepared.folder + "/output";
  Result<agent::JobSettings> settings = SettingsOf(*record, *layout);
  if (!settings.ok()) return settings.error();
  if (!request.python.empty()) settings->python = request.python;
  prepared.python = settings->python;
  prepared.package = programs->python_package;
  prepared.start = agent::StartBody(*settings, 0, 0);
  prepared.environment =
      agent::WorkerEnvironment(agent::OwnEnvironment(), *settings, programs->python_package, {});
  return prepared;
}

// A file in memory that stays open across exec as `descriptor`.
bool PutAt(int descriptor, const std::string& text) {
  Result<Fd> file = MemoryFile("parallelrun-debug", text);
  if (!file.ok()) return false;
  // It may have that very number, and would be closed with its owner.
  const Fd aside(fcntl(file->get(), F_DUPFD_CLOEXEC, 16));
  file->Close();
  return aside.ok() && dup2(aside.get(), descriptor) == descriptor;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Returns when it failed.
void Become(Prepared& prepared, const DebugRequest& request) {
  std::vector<std::string> command = {prepared.python, prepared.package + "/start_debug.py",
                                      prepared.folder};
  if (request.pdb) command.emplace_back("--pdb");
  if (request.debugpy) command.push_back(fmt::format("--debugpy={}", *request.debugpy));
  if (chdir(prepared.code.c_str()) != 0 || !PutAt(kStart, prepared.start) ||
      !PutAt(kWork, prepared.work.work)) {
    return;
  }
  const std::vector<char*> words = Pointers(command);
  const std::vector<char*> environment = Pointers(prepared.environment);
  execvpe(words[0], words.data(), environment.data());
}

}  // namespace

int Debug(const DebugRequest& request) {
  if (request.wanted.mini_batch.has_value() == !request.wanted.item.empty()) {
    fmt::print(stderr,
               "Which one? Give --item FILE or --mini-batch N; parallelrun failures {} has "
               "those that failed\n",
               Printable(request.target, 1000));
    return kExitUsage;
  }
  Result<Prepared> prepared = Prepare(request);
  if (!prepared.ok()) {
    fmt::print(stderr, "{}\n", prepared.error().message);
    return kExitUsage;
  }
  std::fflush(nullptr);
  Become(*prepared, request);
  const int error = errno;
  std::error_code ignored;
  fs::remove_all(prepared->folder, ignored);
  fmt::print(stderr, "{} cannot be started: {}; choose another with --python PATH\n",
             Printable(prepared->python, 1000), std::strerror(error));
  return kExitUsage;
}

}  // namespace parallelrun::cli
