#include "cli/doctor/facts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "base/fd.h"
#include "base/processors.h"
#include "base/small_file.h"
#include "base/version.h"
#include "cli/run/choose_python.h"
#include "cli/run/local_job.h"
#include "cli/run/programs.h"
#include "cli/run/python_check.h"
#include "cli/runs/control_socket.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSmall = 64 << 10;

std::optional<std::string> TextOf(const std::string& path) {
  const Result<std::string> text = ReadSmallFile(path, kSmall);
  if (!text.ok()) return std::nullopt;
  return *text;
}

// "max" is no limit.
std::optional<uint64_t> NumberOf(const std::optional<std::string>& text) {
  if (!text || text->empty() || (*text)[0] < '0' || (*text)[0] > '9') return std::nullopt;
  return std::strtoull(text->c_str(), nullptr, 10);
}

void LookAtGroup(MachineFacts& facts) {
  const std::string group = ControlGroup();
  if (group.empty()) return;
  facts.memory_limit = NumberOf(TextOf(group + "/memory.max"));
  facts.memory_used = NumberOf(TextOf(group + "/memory.current"));
  const std::optional<uint64_t> most = NumberOf(TextOf(group + "/pids.max"));
  const uint64_t now = NumberOf(TextOf(group + "/pids.current")).value_or(0);
  if (most) facts.processes = *most - std::min(*most, now);
}

uint64_t AvailableMemory() {
  std::istringstream lines(TextOf("/proc/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("MemAvailable:")) continue;
    return std::strtoull(line.c_str() + std::strlen("MemAvailable:"), nullptr, 10) * 1024;
  }
  return 0;
}

std::optional<uint64_t> FreeBytes(const std::string& folder) {
  struct statvfs facts {};
  if (statvfs(folder.c_str(), &facts) != 0) return std::nullopt;
  return uint64_t{geteuid() == 0 ? facts.f_bfree : facts.f_bavail} * facts.f_frsize;
}

FolderFacts LookAtFolder(const std::string& path) {
  FolderFacts facts;
  facts.path = path;
  facts.free_bytes = FreeBytes(path).value_or(0);
  std::string name = path + "/.parallelrun-doctor-XXXXXX";
  const Fd file(mkostemp(name.data(), O_CLOEXEC));
  if (!file.ok()) {
    facts.problem = std::string("nothing can be written there: ") + std::strerror(errno);
    return facts;
  }
  if (write(file.get(), "x", 1) != 1 || fsync(file.get()) != 0) {
    facts.problem = std::string("nothing can be written there: ") + std::strerror(errno);
  }
  facts.locks = flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  unlink(name.c_str());
  return facts;
}

std::string LoopbackProblem() {
  const Fd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (listening.ok() &&
      bind(listening.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      listen(listening.get(), 1) == 0) {
    return "";
  }
  return std::string("127.0.0.1 cannot be listened on: ") + std::strerror(errno);
}

std::string OnPath(const std::string& program) {
  const char* path = getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + program;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

void LookAtPython(const std::string& wanted, const Programs& programs, MachineFacts& facts) {
  LocalJob job;
  const PythonChoice choice =
      ChoosePython(wanted, job.job.spec, [](const char* name) { return getenv(name); });
  job.job.spec.environment.python = choice.program;
  // Asked for what any input may need.
  api::Input table;
  table.kind = api::InputKind::kTabular;
  table.tabular.format = api::TabularFormat::kParquet;
  job.job.spec.inputs.push_back(table);
  const PythonReport report = PythonCheck(job, {}, "", programs.python_package).Finish();
  facts.python = report.program.empty() ? choice.program : report.program;
  if (!choice.why.empty()) facts.python += ", " + choice.why;
  facts.python_version = report.version;
  const std::string problem = report.problems.empty() ? "" : report.problems.front().text;
  if (report.version.empty()) {
    facts.python_problem = problem.empty() ? choice.program + " does not answer" : problem;
  } else if (problem.starts_with("No module named")) {
    facts.python_lacks = problem;
  } else {
    facts.python_problem = problem;
  }
}

}  // namespace

MachineFacts GatherFacts(const std::string& python, const std::string& folder) {
  MachineFacts facts;
  facts.release = kVersion;
  const Result<Programs> programs = FindPrograms();
  if (!programs.ok()) facts.programs = programs.error().message;
  if (programs.ok()) LookAtPython(python, *programs, facts);
  const Processors processors = FindProcessors();
  facts.cores = processors.cores;
  facts.core_quota = processors.quota;
  LookAtGroup(facts);
  facts.memory_bytes = AvailableMemory();
  facts.shared_bytes = FreeBytes("/dev/shm");
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  facts.open_files = files.rlim_cur;
  facts.open_files_most = files.rlim_max;
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  facts.temporary.path = temporary;
  if (error) facts.temporary.problem = error.message();
  if (!error) facts.temporary = LookAtFolder(temporary);
  facts.work = LookAtFolder(Absolute(fs::current_path(error), folder));
  facts.loopback_problem = LoopbackProblem();
  if (const Result<std::string> control = ControlFolder(); !control.ok()) {
    facts.control_problem = control.error().message;
  }
  facts.kubectl = OnPath("kubectl");
  return facts;
}

}  // namespace parallelrun::cli
