#include "cli/failures_command.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/count_of.h"
#include "base/escape.h"
#include "base/file_lines.h"
#include "base/files.h"
#include "cli/failures_table.h"
#include "cli/fetch/wanted_files.h"
#include "cli/logs/stored_logs.h"
#include "cli/run/local_run.h"
#include "cli/run/quick_output.h"
#include "coordinator/log_tree/error_logs.h"
#include "coordinator/log_tree/log_folder.h"
#include "store/object_stores.h"
#include "store/wished.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kFailures[] = "failures.jsonl";
constexpr char kVerdict[] = "job_result.txt";

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool IsLogFolder(const fs::path& folder) {
  return Exists(folder / kVerdict) || Exists(folder / kFailures) || Exists(folder / "sys");
}

// Where the logs may be: here, beside or below, as a script or a job file has them.
std::vector<fs::path> LogFolders(const fs::path& start) {
  for (const fs::path& near : {start, start / "logs", start.parent_path() / "logs"}) {
    if (IsLogFolder(near)) return {near};
  }
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(start, error), end; !error && it != end; it.increment(error)) {
    if (IsLogFolder(it->path() / "logs")) found.push_back(it->path() / "logs");
    if (found.size() == 2) break;
  }
  return found;
}

// Prints what is to be tried again or looked at.
class PathPrinter {
 public:
  explicit PathPrinter(bool null) : null_(null), show_(!null && isatty(STDOUT_FILENO) != 0) {}

  void Print(const FailedLine& line) {
    if (line.paths.empty()) ++without_;
    for (const std::string& path : line.paths) {
      if (path == last_) continue;  // the ranges of rows of one file follow each other
      last_ = path;
      if (!null_ && path.find('\n') != std::string::npos) {
        ++broken_;
        continue;
      }
      const std::string text = show_ ? Printable(path, kMostFailedLine) : path;
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fputc(null_ ? '\0' : '\n', stdout);
    }
  }

  int Finish() const {
    if (without_ > 0) {
      fmt::print(stderr, "{} of no file, so without a path\n",
                 CountOf(without_, "failure", "is", "are"));
    }
    if (broken_ > 0) {
      fmt::print(stderr,
                 "{} left out because of line breaks: print them with --paths -0, and read "
                 "them with xargs -0\n",
                 CountOf(broken_, "path", "was", "were"));
    }
    return broken_ > 0 ? kExitFailed : kExitOk;
  }

 private:
  const bool null_;
  const bool show_;  // on a terminal a path must do no harm
  std::string last_;
  uint64_t without_ = 0;
  uint64_t broken_ = 0;
};

int NoLogs(const fs::path& start, const std::string& target) {
  if (!Exists(start)) {
    fmt::print(stderr,
               "{0} does not exist here. Give the output folder of a run on this machine, or its "
               "log folder; or, with --namespace or --context, the name of a job of a cluster: "
               "parallelrun failures {0} --namespace NAMESPACE\n",
               Printable(target, 1000));
  } else {
    fmt::print(stderr,
               "{} holds no logs of a run: give its output folder, or the folder that the summary "
               "calls logs\n",
               Printable(target, 1000));
  }
  return kExitUsage;
}

// The logs that are told of, wherever they are.
struct Logs {
  const coordinator::LogFolder& folder;
  std::string name;    // what people know the folder by
  std::string advice;  // what to do while there is no verdict
  // Called once, when it is known which logs have the tracebacks that are to be shown.
  std::function<Status(const std::vector<ErrorGroup>& groups)> bring;
};

int PrintNone(const FailuresRequest& request, const Logs& logs) {
  if (!Exists(fs::path(logs.folder.path()) / kVerdict)) {
    fmt::print(stderr, "there is no verdict yet, and failures are written with that: {}\n",
               logs.advice);
    return kExitUsage;
  }
  if (request.json) {
    fmt::print("{}", FailureJson({}, {}, logs.name));
  } else if (!request.paths) {
    fmt::print("no item has failed; logs: {}\n", Printable(logs.name, 1000));
  }
  return kExitOk;
}

int PrintTable(const FailuresRequest& request, const FailureTable& table, const Logs& logs) {
  std::vector<ErrorGroup> groups = table.Groups();
  if (request.traceback) {
    if (const Status brought = logs.bring(groups); !brought.ok())
      return TellReadError(brought.error());
    coordinator::ErrorLogs errors(logs.folder);
    for (ErrorGroup& group : groups) {
      group.traceback = errors.Traceback(group.first.log, group.first.id, group.first.tries);
      if (group.traceback.empty()) group.traceback = "no traceback: Python could not write one";
    }
  }
  const auto text = request.json ? FailureJson : FailureText;
  fmt::print("{}", text(groups, table, logs.name));
  return kExitOk;
}

int PrintOf(const FailuresRequest& request, const Logs& logs) {
  const Result<std::unique_ptr<File>> file = logs.folder.OpenRead(kFailures);
  if (!file.ok() && file.error().code == Code::kNotFound) return PrintNone(request, logs);
  if (!file.ok()) {
    fmt::print(stderr, "{}\n", file.error().message);
    return kExitFailed;
  }
  FailureTable table;
  PathPrinter paths(request.null);
  uint64_t unread = 0;
  const Result<uint64_t> too_long = EachLine(**file, kMostFailedLine, [&](std::string_view text) {
    Result<FailedLine> line = ReadFailedLine(text);
    if (!line.ok()) {
      ++unread;
    } else if (request.paths) {
      paths.Print(*line);
    } else {
      table.Add(std::move(*line));
    }
    return true;
  });
  if (!too_long.ok()) {
    fmt::print(stderr, "{}\n", too_long.error().message);
    return kExitFailed;
  }
  const int exit = request.paths ? paths.Finish() : PrintTable(request, table, logs);
  if (unread + *too_long > 0) {
    fmt::print(stderr, "{} of {}/{} could not be read: somebody else has written there\n",
               CountOf(unread + *too_long, "line"), Printable(logs.name, 1000), kFailures);
    return kExitFailed;
  }
  return exit;
}

Status AllIsThere(const std::vector<ErrorGroup>&) { return {}; }

std::string WaitFor(const std::string& logs) {
  return fmt::format(
      "wait for its end, or continue it with --resume. Until then user/error in {} has the "
      "tracebacks",
      Printable(logs, 1000));
}

int PrintStored(const FailuresRequest& request, const store::Wished& wished) {
  LogParts parts = {kVerdict, kFailures};
  if (request.traceback) parts.emplace_back("user/error/");
  const Result<std::unique_ptr<StoredLogFolder>> stored = StoredLogFolder::Bring(wished, parts);
  if (stored.ok()) {
    const std::string& url = (*stored)->url();
    return PrintOf(request, {(*stored)->folder(), url, WaitFor(url), AllIsThere});
  }
  fmt::print(stderr, "{}\n", stored.error().message);
  return stored.error().code == Code::kNotFound ? kExitUsage : kExitFailed;
}

// Of a job of a cluster its list comes first, and then of its error logs those that it names, which
// may be a few of many thousands.
int PrintOfCluster(const FailuresRequest& request) {
  const Result<std::unique_ptr<JobLogs>> made = JobLogs::Make(request.job);
  if (!made.ok()) return TellReadError(made.error());
  JobLogs& logs = **made;
  const Result<nlohmann::json> job = logs.Look();
  if (!job.ok()) return TellReadError(job.error());
  if (const std::optional<store::Wished> stored = LogStoreOf(*job)) {
    logs.Finish();
    return PrintStored(request, *stored);
  }
  const Status came = logs.Bring(".", {kVerdict, kFailures});
  if (!came.ok()) return TellReadError(came.error());
  const Result<coordinator::LogFolder> folder = logs.Open();
  if (!folder.ok()) return TellReadError(folder.error());
  if (!request.traceback) logs.Finish();
  const std::string advice = fmt::format(
      "wait for the end of the job. Until then its tracebacks are in what parallelrun "
      "logs {} prints",
      request.job.Words());
  return PrintOf(request,
                 {*folder, LogsOf(*job), advice, [&logs](const std::vector<ErrorGroup>& groups) {
                    const std::vector<std::string> names = ErrorLogsOf(groups);
                    const Status brought = names.empty() ? Status() : logs.Bring(kErrorLogs, names);
                    if (brought.ok()) logs.Finish();
                    return brought;
                  }});
}

}  // namespace

int PrintFailures(const FailuresRequest& request) {
  if (!request.job.name.empty()) return PrintOfCluster(request);
  if (store::IsStoreUrl(request.target)) {
    store::Wished wished;
    wished.url = request.target;
    return PrintStored(request, wished);
  }
  std::error_code ignored;
  fs::path start = fs::absolute(request.target).lexically_normal();
  if (!start.has_filename()) start = start.parent_path();  // "out/"
  const fs::path folder = fs::is_directory(start, ignored) ? start : start.parent_path();
  const fs::path beside = fs::path(RunFolderOf(start)) / "logs";
  std::vector<fs::path> found;
  if (IsLogFolder(beside)) {
    found = {beside};
  } else if (Exists(start)) {
    found = LogFolders(folder);
  }
  if (found.empty()) return NoLogs(start, request.target);
  if (found.size() > 1) {
    fmt::print(stderr, "{} holds several jobs: give one of them, such as {}\n",
               Printable(request.target, 1000), Printable(found[0].parent_path().native(), 1000));
    return kExitUsage;
  }
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const std::string path = found.front();
  const Result<coordinator::LogFolder> logs = coordinator::LogFolder::Open(*files, path);
  if (!logs.ok()) {
    fmt::print(stderr, "{}\n", logs.error().message);
    return kExitFailed;
  }
  return PrintOf(request, {*logs, path, WaitFor(path), AllIsThere});
}

}  // namespace parallelrun::cli
