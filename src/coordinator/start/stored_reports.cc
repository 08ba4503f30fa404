#include "coordinator/start/stored_reports.h"

#include <memory>
#include <span>
#include <string>

namespace parallelrun::coordinator {
namespace {

// With the names that they have in the log tree.
constexpr const char* kReports[] = {"job_result.txt", "failures.jsonl", "report.html"};

Status PutOne(store::WriteStore& store, const LogFolder& logs, const output::ReportOptions& options,
              const char* name) {
  output::Report report;
  report.name = name;
  const Result<std::unique_ptr<File>> file = logs.OpenRead(name);
  if (file.ok()) {
    const Result<uint64_t> size = (*file)->Size();
    if (!size.ok()) return size.error();
    report.bytes = *size;
    report.read = [&file](uint64_t offset, std::span<char> to) {
      return (*file)->ReadInto(offset, to);
    };
  } else if (file.error().code != Code::kNotFound) {
    return file.error();
  }
  return output::PutReport(store, options, report);
}

}  // namespace

Status PutStoredReports(store::WriteStore& store, const LogFolder& logs,
                        const output::ReportOptions& options) {
  std::string wrong;
  for (const char* const name : kReports) {
    const Status put = PutOne(store, logs, options, name);
    if (put.ok()) continue;
    wrong += (wrong.empty() ? "" : "; ") + std::string(name) + ": " + put.error().message;
    const Code code = put.error().code;
    if (code == Code::kUnavailable || code == Code::kStale) break;
  }
  if (wrong.empty()) return {};
  return Error{Code::kUnavailable,
               "not all reports are beside the output, but in " + logs.path() + " alone: " + wrong};
}

}  // namespace parallelrun::coordinator
