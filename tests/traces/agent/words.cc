#include "tests/traces/agent/words.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <set>

namespace parallelrun::trace {
namespace {

const char* EventWords(job::ProcessEvent::Kind kind) {
  switch (kind) {
    case job::ProcessEvent::Kind::kInitFailed: return "init failed";
    case job::ProcessEvent::Kind::kScriptUnusable: return "the script cannot be used";
    case job::ProcessEvent::Kind::kReady: return "ready";
    case job::ProcessEvent::Kind::kExited: return "ended";
    case job::ProcessEvent::Kind::kGaveUp: return "the node gives up";
    case job::ProcessEvent::Kind::kMetric: return "metric";
    case job::ProcessEvent::Kind::kHeader: return "header";
    case job::ProcessEvent::Kind::kNoRoom: return "no room";
    case job::ProcessEvent::Kind::kRanOut: return "ran out of space";
    case job::ProcessEvent::Kind::kOwes: return "has a shutdown()";
    case job::ProcessEvent::Kind::kOwing: return "shutdown() is to be run by";
    case job::ProcessEvent::Kind::kClosed: return "shutdown() has ended";
    case job::ProcessEvent::Kind::kCloseFailed: return "shutdown() failed";
    case job::ProcessEvent::Kind::kCutOff: return "shutdown() was cut off";
    case job::ProcessEvent::Kind::kCloseLost: return "shutdown() is lost";
    case job::ProcessEvent::Kind::kWhere: return "is at";
    case job::ProcessEvent::Kind::kFetching: return "fetches";
    case job::ProcessEvent::Kind::kFetchFailed: return "its side inputs are lost";
    case job::ProcessEvent::Kind::kStoreWait: return "waits";
  }
  return "";
}

const char* CauseWord(job::Cause cause) {
  switch (cause) {
    case job::Cause::kRun: return "run() failed";
    case job::Cause::kRunTimeout: return "time-out";
    case job::Cause::kOverheadTimeout: return "time-out beside run()";
    case job::Cause::kProcessEnded: return "its process ended";
    default: return "another cause";
  }
}

std::string NameOfLease(const job::LeaseName& name) {
  return fmt::format("{}@{}.{}", name.id, name.fence.epoch, name.fence.number);
}

std::string HeldWords(const job::ExchangeRequest& request) {
  std::map<job::LeaseName, bool> held;
  for (const job::HeldLease& one : request.held) held[{one.id, one.fence}] = one.started;
  std::string words;
  for (const auto& [name, begun] : held) {
    words += (words.empty() ? "" : ", ") + NameOfLease(name) + (begun ? " (begun)" : "");
  }
  return words;
}

std::string EventLine(const job::ProcessEvent& event) {
  using Kind = job::ProcessEvent::Kind;
  const bool of_node = event.kind == Kind::kNoRoom || event.kind == Kind::kRanOut ||
                       event.kind == Kind::kGaveUp || event.kind == Kind::kOwing ||
                       event.kind == Kind::kFetching || event.kind == Kind::kFetchFailed ||
                       event.kind == Kind::kStoreWait;
  const std::string of = of_node ? "" : fmt::format("process {}: ", event.process);
  // Without a word these say that it is over.
  if (event.message.empty() && event.kind == job::ProcessEvent::Kind::kNoRoom) return "room again";
  if (event.message.empty() && event.kind == job::ProcessEvent::Kind::kRanOut)
    return "results again";
  if (event.message.empty() && event.kind == job::ProcessEvent::Kind::kStoreWait)
    return "waits for no store";
  return of + EventWords(event.kind) +
         (event.message.empty() ? "" : ": " + std::string(event.message));
}

std::string FinishedWords(const job::Finished& one) {
  const std::string name = NameOfLease({one.id, one.fence});
  switch (one.kind) {
    case job::Finished::Kind::kReturned: return "hands " + name + " back";
    case job::Finished::Kind::kSucceeded:
      return fmt::format(
          "result of {}: {} rows{}", name, one.row_count,
          one.rows_offset == 0 ? "" : fmt::format(", the rest from byte {} on", one.rows_offset));
    case job::Finished::Kind::kFailed:
      return fmt::format("failure of {}: {}: {}", name, CauseWord(one.cause), one.message);
  }
  return name;
}

}  // namespace

const char* EndWords(agent::AgentEnd end) {
  switch (end) {
    case agent::AgentEnd::kNone: return "not at all";
    case agent::AgentEnd::kFinished: return "the job is over";
    case agent::AgentEnd::kDrained: return "drained";
    case agent::AgentEnd::kGaveUp: return "it gave up";
    case agent::AgentEnd::kLost: return "without a coordinator";
  }
  return "";
}

bool IsPlain(const job::ExchangeRequest& request) {
  return request.offered.empty() && request.events.empty() && request.finished.empty() &&
         request.parts.empty();
}

std::vector<std::string> LinesOf(agent::CallKind call, const job::ExchangeRequest& request) {
  std::string head = call == agent::CallKind::kReport
                         ? "reports"
                         : fmt::format("parks for {:g} s", request.park_ms / 1000.0);
  if (request.want > 0) head += fmt::format(", wants {}", request.want);
  if (!request.held.empty()) head += ", holds " + HeldWords(request);
  if (request.unheard) head += "; it missed an answer";
  std::vector<std::string> lines = {head};
  std::set<job::LeaseName> offered;
  for (const job::OfferedLease& one : request.offered) offered.insert({one.id, one.fence});
  for (const job::LeaseName& name : offered) lines.push_back("  offers " + NameOfLease(name));
  for (const job::ProcessEvent& one : request.events) lines.push_back("  " + EventLine(one));
  for (const job::RowsPart& one : request.parts) {
    lines.push_back(fmt::format("  rows of {}, {} bytes from {} on",
                                NameOfLease({one.id, one.fence}), one.rows.size(), one.offset));
  }
  for (const job::Finished& one : request.finished) lines.push_back("  " + FinishedWords(one));
  return lines;
}

}  // namespace parallelrun::trace
