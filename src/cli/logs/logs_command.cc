#include "cli/logs/logs_command.h"

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/escape.h"
#include "base/files.h"
#include "cli/debug/planned_work.h"
#include "cli/fetch/wanted_files.h"
#include "cli/logs/log_lines.h"
#include "cli/logs/stored_logs.h"
#include "cli/run/local_run.h"
#include "cli/runs/inspect_state.h"
#include "cli/runs/run_record.h"
#include "coordinator/log_tree/error_logs.h"
#include "coordinator/start/layout.h"
#include "coordinator/start/state_lock.h"
#include "job/job_state.h"
#include "store/object_stores.h"
#include "store/wished.h"

namespace parallelrun::cli {
namespace {

constexpr int kLookMs = 300;
constexpr size_t kMostOfAnAttempt = size_t{16} << 20;  // bytes of one of its files

int Refuse(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  return kExitUsage;
}

// As it is for programs; on a terminal a line must do no harm.
class LinePrinter {
 public:
  void Print(std::string_view from, std::string_view line) const {
    std::string text = show_ ? Printable(from, kMostOfAnAttempt) : std::string(from);
    if (!text.empty()) text += " | ";
    text += show_ ? Printable(line, kMostOfAnAttempt) : std::string(line);
    text += '\n';
    std::fwrite(text.data(), 1, text.size(), stdout);
  }

  void PrintLines(std::string_view text) const {
    while (!text.empty()) {
      const size_t end = text.find('\n');
      Print("", text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  }

 private:
  const bool show_ = isatty(STDOUT_FILENO) != 0;
};

// The attempts of a mini-batch and its pieces, as the ledger has them.
class Attempts {
 public:
  Attempts(coordinator::LogFolder folder, job::BatchId mini_batch)
      : folder_(folder), errors_(std::move(folder)), mini_batch_(mini_batch) {}

  Status Visit(const job::Record& record) {
    if (const auto* settings = std::get_if<job::SettingsRecord>(&record)) {
      if (settings->generation != generation_) failed_.clear();
      generation_ = settings->generation;
    } else if (const auto* r = std::get_if<job::ResultRecord>(&record)) {
      if (job::WholeOf(r->id) == mini_batch_) Print(*r);
    } else if (const auto* f = std::get_if<job::FailedRecord>(&record)) {
      if (job::WholeOf(f->id) == mini_batch_) Print(*f);
    }
    return {};
  }
  bool any() const { return any_; }

 private:
  static std::string OfProcess(const char* folder, uint32_t node, uint32_t process,
                               const char* suffix) {
    return fmt::format("user/{}/{}/process{:03}{}", folder, node, process, suffix);
  }

  void Print(const job::ResultRecord& r) {
    any_ = true;
    fmt::print("== mini-batch {}: succeeded on node {}, process{:03}; its process writes {}\n",
               job::MiniBatchText(r.id), r.node, r.process,
               folder_.path() + "/" + OfProcess("stdout", r.node, r.process, ".stdout.txt"));
  }

  void Print(const job::FailedRecord& f) {
    any_ = true;
    const uint32_t attempt = ++failed_[f.id];
    fmt::print("== mini-batch {}, attempt {}: failed on node {}, process{:03}: {}: {}\n",
               job::MiniBatchText(f.id), attempt, f.node, f.process, Printable(f.kind, 100),
               Printable(f.message, 4000));
    PrintRange(OfProcess("stdout", f.node, f.process, ".stdout.txt"), f.output.stdout_begin,
               f.output.stdout_end);
    PrintRange(OfProcess("stderr", f.node, f.process, ".stderr.txt"), f.output.stderr_begin,
               f.output.stderr_end);
    printer_.PrintLines(errors_.Traceback(std::string(f.log), f.id, attempt));
  }

  void PrintRange(const std::string& name, uint64_t begin, uint64_t end) const {
    if (end <= begin) return;
    const Result<std::unique_ptr<File>> file = folder_.OpenRead(name);
    if (!file.ok()) return fmt::print("({} is not there)\n", name);
    const uint64_t size = std::min<uint64_t>(end - begin, kMostOfAnAttempt);
    const Result<std::string> text = (*file)->ReadAt(begin, size);
    if (!text.ok()) return fmt::print("({})\n", Printable(text.error().message, 1000));
    printer_.PrintLines(*text);
  }

  const coordinator::LogFolder folder_;
  coordinator::ErrorLogs errors_;
  const job::BatchId mini_batch_;
  const LinePrinter printer_;
  uint32_t generation_ = 0;
  std::map<job::BatchId, uint32_t> failed_;  // attempts
  bool any_ = false;
};

int PrintAttempts(const Files& files, const std::string& state_folder,
                  const coordinator::JobLayout& layout, const coordinator::LogFolder& logs,
                  const std::string& item) {
  WantedWork wanted;
  wanted.item = item;
  const Result<FoundWork> found = FindWork(files, state_folder, layout.inputs, wanted);
  if (!found.ok()) return Refuse(found.error().message);
  Attempts attempts(logs, job::WholeOf(found->mini_batch));
  const Result<uint64_t> run = InspectState(
      files, state_folder, [&](const job::Record& record, const job::Place&, const job::Place&) {
        return attempts.Visit(record);
      });
  if (!run.ok()) return Refuse(run.error().message);
  if (!attempts.any()) fmt::print("mini-batch {} has not been finished yet\n", found->mini_batch);
  return kExitOk;
}

int PrintLines(const coordinator::LogFolder& folder, std::optional<uint32_t> node) {
  const LinePrinter printer;
  LogLines(folder, node)
      .Look([&printer](std::string_view from, std::string_view line) { printer.Print(from, line); },
            true);
  return kExitOk;
}

int PrintStoredLogs(const LogsRequest& request, const store::Wished& wished) {
  LogParts parts;
  for (const std::string& folder : FoldersOfLines(request.node)) parts.push_back(folder + "/");
  if (request.node) parts.push_back(FolderOfAgent(*request.node) + "/" + kAgentLog);
  const Result<std::unique_ptr<StoredLogFolder>> stored = StoredLogFolder::Bring(wished, parts);
  if (!stored.ok()) return Refuse(stored.error().message);
  return PrintLines((*stored)->folder(), request.node);
}

int PrintLogsOfCluster(const LogsRequest& request) {
  const Result<std::unique_ptr<JobLogs>> made = JobLogs::Make(request.job);
  if (!made.ok()) return TellReadError(made.error());
  JobLogs& logs = **made;
  const Result<nlohmann::json> job = logs.Look();
  if (!job.ok()) return TellReadError(job.error());
  if (const std::optional<store::Wished> stored = LogStoreOf(*job)) {
    logs.Finish();
    return PrintStoredLogs(request, *stored);
  }
  for (const std::string& folder : FoldersOfLines(request.node)) {
    if (const Status came = logs.Bring(folder, {}); !came.ok()) return TellReadError(came.error());
  }
  if (request.node) {
    const Status came = logs.Bring(FolderOfAgent(*request.node), {kAgentLog});
    if (!came.ok()) return TellReadError(came.error());
  }
  logs.Finish();
  const Result<coordinator::LogFolder> folder = logs.Open();
  return folder.ok() ? PrintLines(*folder, request.node) : TellReadError(folder.error());
}

// What needs the state folder of a run.
std::optional<std::string> OnlyHere(const LogsRequest& request) {
  if (!request.follow && request.item.empty()) return std::nullopt;
  const std::string flag = request.follow ? "--follow" : "--item";
  if (request.job.name.empty()) {
    return flag + " is for runs on this machine: leave it out for logs in a store";
  }
  const std::string words = request.job.Words();
  return flag + " is for runs on this machine: of a job of a cluster " +
         (request.follow ? "parallelrun page " + words + " follows the logs in a browser"
                         : "parallelrun failures " + words + " --traceback has what failed");
}

}  // namespace

int PrintLogs(const LogsRequest& request) {
  const bool in_store = store::IsStoreUrl(request.target);
  if (in_store || !request.job.name.empty()) {
    if (const std::optional<std::string> why = OnlyHere(request)) return Refuse(*why);
    if (!request.job.name.empty()) return PrintLogsOfCluster(request);
    store::Wished wished;
    wished.url = request.target;
    return PrintStoredLogs(request, wished);
  }
  const Result<std::string> state = FindStateFolder(request.target);
  if (!state.ok()) return Refuse(state.error().message);
  const Result<RunRecord> record = ReadRunRecord(*state);
  if (!record.ok()) return Refuse(record.error().message);
  const Result<coordinator::JobLayout> layout = coordinator::LayOut(record->job, record->volumes);
  if (!layout.ok()) return Refuse(layout.error().message);
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const Result<bool> there = files->Exists(layout->log_folder);
  if (there.ok() && !*there) return Refuse(layout->log_folder + " is not there any more");
  const Result<coordinator::LogFolder> logs =
      coordinator::LogFolder::Open(*files, layout->log_folder);
  if (!logs.ok()) return Refuse(logs.error().message);
  if (!request.item.empty()) return PrintAttempts(*files, *state, *layout, *logs, request.item);
  LogLines lines(*logs, request.node);
  const LinePrinter printer;
  while (true) {
    // What is written between this look and the next one is seen by the next one.
    const bool goes_on = request.follow && coordinator::StateIsLocked(*files, *state);
    lines.Look(
        [&printer](std::string_view from, std::string_view line) { printer.Print(from, line); },
        !goes_on);
    std::fflush(stdout);
    if (!goes_on) return kExitOk;
    poll(nullptr, 0, kLookMs);
  }
}

}  // namespace parallelrun::cli
