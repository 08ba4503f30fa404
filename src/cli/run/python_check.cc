#include "cli/run/python_check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "agent/agent_config.h"
#include "agent/processes/spawn.h"
#include "azure/worker_flags.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/small_file.h"
#include "base/time.h"

namespace parallelrun::cli {
namespace {

constexpr Duration kLimit = seconds(20);
constexpr size_t kMaxAnswer = 1 << 20;
constexpr std::string_view kMark = "parallelrun-preflight";  // of preflight.py
constexpr char kChoose[] = "choose another with --python PATH, or in spec.environment.python";

// Imported rather than run by its path: then it is compiled once, and not each time.
constexpr char kCommand[] =
    "import sys; path = sys.path[:]; sys.path.insert(0, sys.argv[1]); import preflight; "
    "sys.path[:] = path; preflight.main(sys.argv[2:]); preflight.os._exit(0)";  // no time to tidy
                                                                                // up

std::string FunctionsOf(const api::JobSpec& spec) {
  return azure::WorkerFlagsOf(spec.arguments).async_mode
             ? "enqueue,check_all_tasks_processed,get_finished_batch_result,"
               "get_processing_batch_number"
             : "run";
}

// What reads the inputs and writes the output, with why it is needed.
std::vector<std::string> NeedsOf(const api::JobSpec& spec) {
  std::vector<std::string> needs;
  for (const api::Input& input : spec.inputs) {
    if (input.kind != api::InputKind::kTabular || spec.rank_mini_batch_count > 0) continue;
    const bool parquet = input.tabular.format == api::TabularFormat::kParquet;
    if (needs.empty()) needs = {"pandas", "it reads the tabular input"};
    if (parquet && needs.size() == 2) {
      needs.insert(needs.end(), {"pyarrow", "it reads Parquet"});
    }
  }
  const bool writes = spec.output.format == api::OutputFormat::kParquet &&
                      spec.output.action == api::OutputAction::kAppendRow;
  if (writes && std::find(needs.begin(), needs.end(), "pyarrow") == needs.end()) {
    needs.insert(needs.end(), {"pyarrow", "it writes Parquet"});
  }
  return needs;
}

std::vector<std::string> EnvironmentOf(const api::JobSpec& spec,
                                       const std::string& python_package) {
  agent::JobSettings settings;
  settings.python = spec.environment.python;
  for (const nlohmann::json& entry : spec.environment.env) {
    if (!lenient::At(entry, "value").is_string()) continue;
    settings.environment.emplace_back(lenient::Text(entry, "name"), lenient::Text(entry, "value"));
  }
  return agent::WorkerEnvironment(agent::OwnEnvironment(), settings, python_package, {});
}

std::string LastLineOf(int fd) {
  std::string text = OrEmpty(ReadEnd(fd, 4096, "what it said"));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return Printable(text.substr(text.rfind('\n') + 1), 1000);
}

bool TooOld(const std::string& version) {
  char* end = nullptr;
  const int64_t major = std::strtol(version.c_str(), &end, 10);
  const int64_t minor = *end == '.' ? std::strtol(end + 1, nullptr, 10) : 0;
  return major < 3 || (major == 3 && minor < 8);
}

}  // namespace

std::optional<PythonReport> ReadPythonReport(std::string_view printed) {
  const std::string mark = std::string(1, '\0').append(kMark) + '\0';
  const size_t begin = printed.find(mark);
  if (begin == std::string_view::npos) return std::nullopt;
  // The zero byte of its last text is the first of the mark.
  const std::string_view rest = printed.substr(begin + mark.size());
  const size_t whole = rest.find(mark);
  if (whole == std::string_view::npos) return std::nullopt;
  const std::string_view answer = rest.substr(0, whole + 1);
  std::vector<std::string> texts;
  for (size_t from = 0, end = 0; (end = answer.find('\0', from)) != std::string::npos;
       from = end + 1) {
    texts.push_back(Printable(answer.substr(from, end - from), 8192));
  }
  if (texts.size() < 2) return std::nullopt;
  PythonReport report{texts[0], texts[1], {}};
  for (size_t i = 2; i + 1 < texts.size(); i += 2) {
    report.problems.push_back({texts[i], texts[i + 1]});
  }
  return report;
}

PythonCheck::PythonCheck(const LocalJob& job, const RunRequest& request, const std::string& script,
                         const std::string& python_package)
    : python_(job.job.spec.environment.python) {
  const api::JobSpec& spec = job.job.spec;
  const std::string& root = job.code_folder;
  // As Launcher has it: with a job file, the root alone.
  std::string own_folder;
  if (request.quick) own_folder = std::filesystem::path(root + "/" + script).parent_path();
  std::array<int, 2> pipe{};
  if (pipe2(pipe.data(), O_CLOEXEC) != 0) return;
  answer_ = Fd(pipe[0]);
  const Fd write_end(pipe[1]);
  errors_ = Fd(memfd_create("parallelrun-python", MFD_CLOEXEC));
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  agent::SpawnSpec python;
  python.command = {
      python_, "-W",       "ignore",         "-c", kCommand, python_package + "/parallelrun", root,
      script,  own_folder, FunctionsOf(spec)};
  for (std::string& need : NeedsOf(spec)) python.command.push_back(std::move(need));
  python.environment = EnvironmentOf(spec, python_package);
  python.folder = script.empty() ? "/" : root;
  python.descriptors = {null.get(), write_end.get(), errors_.get()};
  const Result<pid_t> pid = agent::Spawn(python);
  if (pid.ok()) {
    pid_ = *pid;
  } else {
    cannot_start_ = pid.error().message;
  }
}

PythonCheck::~PythonCheck() {
  if (pid_ == 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

PythonReport PythonCheck::Finish(int stop) {
  if (cannot_start_) {
    return {"", "", {{"python", fmt::format("{}; {}", *cannot_start_, kChoose)}}};
  }
  if (pid_ == 0) return {};
  SystemClock clock;
  const Instant until = clock.Now() + kLimit;
  std::string printed;
  std::optional<PythonReport> answer;
  std::array<char, 65536> buffer{};
  while (!answer && printed.size() < kMaxAnswer) {
    const auto left = std::chrono::duration_cast<milliseconds>(until - clock.Now()).count();
    std::array<pollfd, 2> waits{pollfd{answer_.get(), POLLIN, 0}, pollfd{stop, POLLIN, 0}};
    if (left <= 0) return {};
    const int ready = poll(waits.data(), waits.size(), static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return {};
    if (ready <= 0) continue;
    if (waits[1].revents != 0) return {};
    const ssize_t n = read(answer_.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    printed.append(buffer.data(), static_cast<size_t>(n));
    answer = ReadPythonReport(printed);
  }
  const bool endless = !answer && printed.size() >= kMaxAnswer;
  if (answer || endless) kill(-pid_, SIGKILL);  // with what its greeting has started
  int status = 0;
  waitpid(std::exchange(pid_, 0), &status, 0);
  PythonReport report = answer.value_or(PythonReport());
  if (endless) {
    report.problems = {{"python", fmt::format("{} prints without an end and does not answer; {}",
                                              python_, kChoose)}};
  } else if (!answer) {
    const std::string how = WIFEXITED(status)
                                ? fmt::format("ended with status {}", WEXITSTATUS(status))
                                : fmt::format("was killed by signal {}", WTERMSIG(status));
    report.problems = {
        {"python", fmt::format("{} {}: {}; {}", python_, how, LastLineOf(errors_.get()), kChoose)}};
  } else if (TooOld(report.version)) {
    report.problems = {
        {"python", fmt::format("{} is Python {}, and ParallelRun needs 3.8 or newer; {}",
                               report.program, report.version, kChoose)}};
  }
  return report;
}

}  // namespace parallelrun::cli
