#include "tests/traces/agent/words.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <set>

namespace parallelrun::trace {
namespace {

const char* EventWords(ProcessEvent::Kind kind) {
  switch (kind) {
    case ProcessEvent::Kind::kInitFailed: return "init failed";
    case ProcessEvent::Kind::kScriptUnusable: return "the script cannot be used";
    case ProcessEvent::Kind::kReady: return "ready";
    case ProcessEvent::Kind::kExited: return "ended";
    case ProcessEvent::Kind::kGaveUp: return "the node gives up";
    case ProcessEvent::Kind::kMetric: return "metric";
    case ProcessEvent::Kind::kHeader: return "header";
    case ProcessEvent::Kind::kNoRoom: return "no room";
    case ProcessEvent::Kind::kRanOut: return "ran out of space";
    case ProcessEvent::Kind::kOwes: return "has a shutdown()";
    case ProcessEvent::Kind::kOwing: return "shutdown() is to be run by";
    case ProcessEvent::Kind::kClosed: return "shutdown() has ended";
    case ProcessEvent::Kind::kCloseFailed: return "shutdown() failed";
    case ProcessEvent::Kind::kCutOff: return "shutdown() was cut off";
    case ProcessEvent::Kind::kCloseLost: return "shutdown() is lost";
  }
  return "";
}

const char* CauseWord(Cause cause) {
  switch (cause) {
    case Cause::kRun: return "run() failed";
    case Cause::kRunTimeout: return "time-out";
    case Cause::kOverheadTimeout: return "time-out beside run()";
    case Cause::kProcessEnded: return "its process ended";
    default: return "another cause";
  }
}

std::string NameOfLease(const LeaseName& name) {
  return fmt::format("{}@{}.{}", name.id, name.fence.epoch, name.fence.number);
}

std::string HeldWords(const ExchangeRequest& request) {
  std::map<LeaseName, bool> held;
  for (const HeldLease& one : request.held) held[{one.id, one.fence}] = one.started;
  std::string words;
  for (const auto& [name, begun] : held) {
    words += (words.empty() ? "" : ", ") + NameOfLease(name) + (begun ? " (begun)" : "");
  }
  return words;
}

std::string EventLine(const ProcessEvent& event) {
  using Kind = ProcessEvent::Kind;
  const bool of_node = event.kind == Kind::kNoRoom || event.kind == Kind::kRanOut ||
                       event.kind == Kind::kGaveUp || event.kind == Kind::kOwing;
  const std::string of = of_node ? "" : fmt::format("process {}: ", event.process);
  // Without a word these two say that it is over.
  if (event.message.empty() && event.kind == ProcessEvent::Kind::kNoRoom) return "room again";
  if (event.message.empty() && event.kind == ProcessEvent::Kind::kRanOut) return "results again";
  return of + EventWords(event.kind) +
         (event.message.empty() ? "" : ": " + std::string(event.message));
}

std::string FinishedWords(const Finished& one) {
  const std::string name = NameOfLease({one.id, one.fence});
  switch (one.kind) {
    case Finished::Kind::kReturned: return "hands " + name + " back";
    case Finished::Kind::kSucceeded:
      return fmt::format(
          "result of {}: {} rows{}", name, one.row_count,
          one.rows_offset == 0 ? "" : fmt::format(", the rest from byte {} on", one.rows_offset));
    case Finished::Kind::kFailed:
      return fmt::format("failure of {}: {}: {}", name, CauseWord(one.cause), one.message);
  }
  return name;
}

}  // namespace

const char* EndWords(AgentEnd end) {
  switch (end) {
    case AgentEnd::kNone: return "not at all";
    case AgentEnd::kFinished: return "the job is over";
    case AgentEnd::kDrained: return "drained";
    case AgentEnd::kGaveUp: return "it gave up";
    case AgentEnd::kLost: return "without a coordinator";
  }
  return "";
}

bool IsPlain(const ExchangeRequest& request) {
  return request.offered.empty() && request.events.empty() && request.finished.empty() &&
         request.parts.empty();
}

std::vector<std::string> LinesOf(CallKind call, const ExchangeRequest& request) {
  std::string head = call == CallKind::kReport
                         ? "reports"
                         : fmt::format("parks for {:g} s", request.park_ms / 1000.0);
  if (request.want > 0) head += fmt::format(", wants {}", request.want);
  if (!request.held.empty()) head += ", holds " + HeldWords(request);
  if (request.unheard) head += "; it missed an answer";
  std::vector<std::string> lines = {head};
  std::set<LeaseName> offered;
  for (const OfferedLease& one : request.offered) offered.insert({one.id, one.fence});
  for (const LeaseName& name : offered) lines.push_back("  offers " + NameOfLease(name));
  for (const ProcessEvent& one : request.events) lines.push_back("  " + EventLine(one));
  for (const RowsPart& one : request.parts) {
    lines.push_back(fmt::format("  rows of {}, {} bytes from {} on",
                                NameOfLease({one.id, one.fence}), one.rows.size(), one.offset));
  }
  for (const Finished& one : request.finished) lines.push_back("  " + FinishedWords(one));
  return lines;
}

}  // namespace parallelrun::trace
