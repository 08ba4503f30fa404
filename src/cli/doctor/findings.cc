#include "cli/doctor/findings.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "cli/run/preflight.h"

namespace parallelrun::cli {
namespace {

constexpr uint64_t kMegabyte = 1'000'000;
constexpr uint64_t kGigabyte = 1'000 * kMegabyte;
constexpr uint64_t kLittleRoom = kGigabyte;
constexpr uint64_t kNoRoom = 10 * kMegabyte;
constexpr uint64_t kSharedWanted = 64 * kMegabyte;  // more than it, as containers have it
constexpr uint64_t kFilesWanted = 1024;
constexpr uint64_t kProcessesWanted = 200;
constexpr uint64_t kMemoryPerProcess = 500 * kMegabyte;

std::string Shown(const std::string& text) { return Printable(text, kShownLongest); }

class Findings {
 public:
  void Ok(std::string subject, std::string text) {
    all.push_back({Level::kOk, std::move(subject), std::move(text), ""});
  }
  void Add(Level level, std::string subject, std::string text, std::string to_do) {
    all.push_back({level, std::move(subject), std::move(text), std::move(to_do)});
  }
  std::vector<Finding> all;
};

void LookAtPython(const MachineFacts& facts, Findings& out) {
  if (!facts.python_problem.empty()) {
    return out.Add(Level::kFail, "python", Shown(facts.python_problem),
                   "name another Python with --python, or activate an environment that has one");
  }
  out.Ok("python", fmt::format("{} ({})", facts.python_version, Shown(facts.python)));
  if (facts.python_lacks.empty()) return out.Ok("packages", "pandas and pyarrow are there");
  out.Add(Level::kWarn, "packages", Shown(facts.python_lacks),
          "without it, inputs that are files or JSON lines work all the same");
}

void LookAtFolder(const FolderFacts& folder, const std::string& subject, const std::string& choose,
                  Findings& out) {
  const std::string path = Shown(folder.path);
  const std::string free = fmt::format("{}: {} free", path, Bytes(folder.free_bytes));
  if (!folder.problem.empty()) {
    return out.Add(Level::kFail, subject, fmt::format("{}: {}", path, Shown(folder.problem)),
                   choose);
  }
  if (!folder.locks) {
    return out.Add(Level::kFail, subject, path + ": files there cannot be locked",
                   "two runs could not tell each other apart: " + choose);
  }
  if (folder.free_bytes < kLittleRoom) {
    return out.Add(folder.free_bytes < kNoRoom ? Level::kFail : Level::kWarn, subject, free,
                   "make room, or " + choose);
  }
  out.Ok(subject, free);
}

void LookAtCores(const MachineFacts& facts, Findings& out) {
  if (!facts.core_quota || *facts.core_quota >= facts.cores) {
    return out.Ok("cores", fmt::format("{}", facts.cores));
  }
  const auto processes = std::max<uint64_t>(1, static_cast<uint64_t>(*facts.core_quota));
  out.Add(Level::kWarn, "cores",
          fmt::format("{}, of which a container limit leaves the time of {:.1f}", facts.cores,
                      *facts.core_quota),
          fmt::format("start as many worker processes: --processes {}", processes));
}

void LookAtMemory(const MachineFacts& facts, Findings& out) {
  uint64_t left = facts.memory_bytes;
  std::string text = fmt::format("{} available", Bytes(facts.memory_bytes));
  if (facts.memory_limit) {
    const uint64_t used = std::min(facts.memory_used.value_or(0), *facts.memory_limit);
    left = std::min(left, *facts.memory_limit - used);
    text += fmt::format(", and a container limit of {} with {} left", Bytes(*facts.memory_limit),
                        Bytes(*facts.memory_limit - used));
  }
  const uint64_t each = left / std::max(1U, facts.cores);
  text += fmt::format(": {} for each of {} worker processes", Bytes(each), facts.cores);
  if (each >= kMemoryPerProcess) return out.Ok("memory", text);
  out.Add(Level::kWarn, "memory", text,
          "a script that loads a model may need more: start fewer processes with --processes");
}

void LookAtLimits(const MachineFacts& facts, Findings& out) {
  if (!facts.shared_bytes) {
    out.Add(Level::kWarn, "/dev/shm", "not there",
            "multiprocessing and PyTorch's DataLoader need it: mount a tmpfs there");
  } else if (*facts.shared_bytes <= kSharedWanted + kSharedWanted / 10) {
    out.Add(Level::kWarn, "/dev/shm", Bytes(*facts.shared_bytes) + " free",
            "PyTorch's DataLoader may need more: docker run --shm-size 1g");
  } else {
    out.Ok("/dev/shm", Bytes(*facts.shared_bytes) + " free");
  }
  if (facts.open_files < kFilesWanted) {
    const std::string raise =
        facts.open_files_most >= kFilesWanted
            ? fmt::format("raise it in this shell: ulimit -n {}", facts.open_files_most)
            : "have whoever runs this machine raise it (ulimit -n)";
    out.Add(Level::kWarn, "open files", fmt::format("at most {}", facts.open_files), raise);
  } else {
    out.Ok("open files", fmt::format("at most {}", facts.open_files));
  }
  if (facts.processes && *facts.processes < kProcessesWanted) {
    out.Add(Level::kWarn, "processes", fmt::format("{} more may be started", *facts.processes),
            "end some, or raise their limit (ulimit -u; in a container, the limit of process IDs)");
  } else {
    out.Ok("processes",
           facts.processes ? fmt::format("{} more may be started", *facts.processes) : "no limit");
  }
}

const char* Word(Level level) {
  switch (level) {
    case Level::kOk: return "ok";
    case Level::kWarn: return "warn";
    case Level::kFail: break;
  }
  return "fail";
}

}  // namespace

std::vector<Finding> FindingsOf(const MachineFacts& facts) {
  Findings out;
  if (facts.programs.empty()) {
    out.Ok("programs", "parallelrun " + facts.release);
  } else {
    out.Add(Level::kFail, "programs", Shown(facts.programs), "install ParallelRun again");
  }
  LookAtPython(facts, out);
  LookAtFolder(facts.temporary, "temporary files", "set TMPDIR to another folder", out);
  LookAtFolder(facts.work, "this folder", "use another folder for --output", out);
  LookAtCores(facts, out);
  LookAtMemory(facts, out);
  LookAtLimits(facts, out);
  if (facts.loopback_problem.empty()) {
    out.Ok("loopback", "127.0.0.1 can be listened on");
  } else {
    out.Add(Level::kFail, "loopback", Shown(facts.loopback_problem),
            "the programs of a run talk over 127.0.0.1: bring the interface lo up");
  }
  if (facts.control_problem.empty()) {
    out.Ok("other runs", "can be found by ps, attach and stop");
  } else {
    out.Add(Level::kWarn, "other runs", Shown(facts.control_problem),
            "until then ps, attach and stop find no runs");
  }
  out.Ok("kubectl", facts.kubectl.empty() ? "not there; only jobs on a cluster need it"
                                          : Shown(facts.kubectl));
  return std::move(out.all);
}

std::string FindingsText(const std::vector<Finding>& findings) {
  std::string text;
  size_t warnings = 0;
  size_t failures = 0;
  for (const Finding& finding : findings) {
    warnings += finding.level == Level::kWarn ? 1 : 0;
    failures += finding.level == Level::kFail ? 1 : 0;
    text += fmt::format("{:<4}  {:<15}  {}\n", Word(finding.level), finding.subject, finding.text);
    if (!finding.to_do.empty()) text += fmt::format("{:<23}{}\n", "", finding.to_do);
  }
  if (warnings + failures == 0) return text + "everything is as it should be\n";
  return text + fmt::format("{} to fix, {} to know\n", failures, warnings);
}

std::string FindingsJson(const std::vector<Finding>& findings) {
  nlohmann::json list = nlohmann::json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"level", Word(finding.level)},
                    {"subject", finding.subject},
                    {"text", finding.text},
                    {"toDo", finding.to_do}});
  }
  return nlohmann::json{{"findings", list}}.dump(-1, ' ', false,
                                                 nlohmann::json::error_handler_t::replace) +
         "\n";
}

}  // namespace parallelrun::cli
