#include "agent/core/outcome.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "job/side_list.h"
#include "parquet/row_group.h"
#include "reasons/reason.h"

namespace parallelrun::agent {
namespace {

using reasons::Reason;

// A page may say that something began a moment from now: it is written by another process.
uint64_t PositiveNs(Duration time) {
  return static_cast<uint64_t>(std::max<int64_t>(time.count(), 0)) * 1000;
}

FailedAnswer EndedProcess(uint32_t process, const std::string& words, Duration ran) {
  FailedAnswer answer;
  answer.run_ns = PositiveNs(ran);
  answer.cause = job::Cause::kProcessEnded;
  answer.kind = Reason("ProcessEnded");
  answer.message = ProcessName(process) + " " + words;
  return answer;
}

FailedAnswer TimedOut(const Overdue& overdue) {
  FailedAnswer answer;
  answer.run_ns = overdue.run_ns;
  answer.cause = overdue.cause;
  answer.kind =
      overdue.cause == job::Cause::kRunTimeout ? Reason("RunTimeout") : Reason("OverheadTimeout");
  answer.message = overdue.message;
  return answer;
}

// False: what is received in these two pieces does not begin with a list of side files.
bool TakeSideList(std::string_view& parts, std::string_view& rest) {
  job::SideLine line;
  for (std::string_view* const piece : {&parts, &rest}) {
    const Result<std::string_view> left = line.RowsIn(*piece, piece == &parts);
    if (!left.ok()) return false;
    *piece = *left;
  }
  return line.line() && job::ParseSideList(*line.line()).ok();
}

}  // namespace

Outcome Succeeded(const ResultAnswer& answer, Duration elapsed) {
  Outcome outcome;
  outcome.kind = job::Finished::Kind::kSucceeded;
  outcome.result() = answer.result();
  outcome.elapsed_ns = std::max(PositiveNs(elapsed), answer.run_ns);
  return outcome;
}

Outcome Failed(FailedAnswer answer, Duration elapsed) {
  Outcome outcome;
  outcome.kind = job::Finished::Kind::kFailed;
  outcome.result() = answer.result();
  outcome.elapsed_ns = std::max(PositiveNs(elapsed), answer.run_ns);
  outcome.cause = answer.cause;
  outcome.error_kind = std::move(answer.kind);
  outcome.message = std::move(answer.message);
  outcome.log = std::move(answer.log);
  outcome.output = answer.output;
  return outcome;
}

Outcome NotFetched(const Error& why) {
  FailedAnswer answer;
  answer.cause = job::Cause::kInput;
  answer.kind = why.code == Code::kStale ? Reason("InputChanged") : Reason("InputUnreadable");
  answer.message = why.message;
  return Failed(std::move(answer), Duration(0));
}

Outcome OfDeath(uint32_t node, uint32_t process, const Ended& ended, const Orphan& orphan,
                const std::string& words, const job::OutputRanges& output) {
  FailedAnswer answer = orphan.fault == Fault::kTimedOut ? TimedOut(ended.killed_for)
                                                         : EndedProcess(process, words, orphan.ran);
  answer.log = StderrLog(node, process);
  if (orphan.at_work) answer.output = output;
  return Failed(std::move(answer), orphan.elapsed);
}

bool WholeRows(std::string_view parts, const ResultAnswer& answer, Rows rows, bool staged) {
  std::string_view rest = answer.rows;
  if (staged && !TakeSideList(parts, rest)) return false;
  const std::string_view last = rest.empty() ? parts : rest;
  if (rows == Rows::kNone) return last.empty();
  if (rows == Rows::kRowGroup) {
    if (answer.row_count == 0) return last.empty();
    return parquet::IsRowGroup({parts, rest}, answer.row_count);
  }
  if (!last.empty() && last.back() != '\n') return false;
  size_t ends = 0;
  for (const std::string_view lines : {parts, rest}) {
    ends += static_cast<size_t>(std::count(lines.begin(), lines.end(), '\n'));
    if (answer.row_count <= ends) return true;
  }
  return false;
}

std::string StderrLog(uint32_t node, uint32_t process) {
  return fmt::format("user/stderr/{}/{}.stderr.txt", node, ProcessName(process));
}

std::string ErrorLog(uint32_t node, uint32_t process) {
  return fmt::format("user/error/{}/{}.txt", node, ProcessName(process));
}

}  // namespace parallelrun::agent
