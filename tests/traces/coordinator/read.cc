#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/traces/coordinator/words.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::trace {
namespace {

// One word for each value; another word is a mistake of the text.
template <typename Value>
Value ReadWord(Command& command, const std::string& text,
               const std::map<std::string, Value>& words) {
  const auto found = words.find(text);
  if (found != words.end()) return found->second;
  command.Wrong("nobody knows the word \"" + text + "\"");
  return words.begin()->second;
}

// "2.7".
std::pair<uint64_t, uint64_t> ReadPair(Command& command, const std::string& text) {
  const size_t dot = text.find('.');
  if (dot == std::string::npos) {
    command.Wrong("\"" + text + "\" is not EPOCH.NUMBER");
    return {};
  }
  return {command.NumberIn(text.substr(0, dot)), command.NumberIn(text.substr(dot + 1))};
}

}  // namespace

job::LeaseName ReadLease(Command& command, const std::string& text) {
  const size_t at = text.find('@');
  if (at == std::string::npos) {
    command.Wrong("\"" + text + "\" is not MINI-BATCH@EPOCH.NUMBER");
    return {};
  }
  const std::string id = text.substr(0, at);
  const size_t slash = id.find('/');
  job::LeaseName name;
  name.id = command.NumberIn(id.substr(0, slash));
  if (slash != std::string::npos) name.id += command.NumberIn(id.substr(slash + 1)) << 32;
  const auto [epoch, number] = ReadPair(command, text.substr(at + 1));
  name.fence = {static_cast<uint32_t>(epoch), number};
  return name;
}

job::Incarnation ReadIncarnation(Command& command, const std::string& text) {
  const auto [epoch, number] = ReadPair(command, text);
  return {static_cast<uint32_t>(epoch), static_cast<uint32_t>(number)};
}

job::Cause ReadCause(Command& command, const std::string& text) {
  static const std::map<std::string, job::Cause> words = {
      {"run", job::Cause::kRun},
      {"run-timeout", job::Cause::kRunTimeout},
      {"process-ended", job::Cause::kProcessEnded},
      {"overhead-timeout", job::Cause::kOverheadTimeout},
      {"input", job::Cause::kInput},
      {"misfit", job::Cause::kMisfit}};
  return ReadWord(command, text, words);
}

job::ProcessEvent::Kind ReadEvent(Command& command, const std::string& text) {
  using Kind = job::ProcessEvent::Kind;
  static const std::map<std::string, Kind> words = {{"init-failed", Kind::kInitFailed},
                                                    {"script-unusable", Kind::kScriptUnusable},
                                                    {"ready", Kind::kReady},
                                                    {"exited", Kind::kExited},
                                                    {"gave-up", Kind::kGaveUp},
                                                    {"metric", Kind::kMetric},
                                                    {"header", Kind::kHeader},
                                                    {"no-room", Kind::kNoRoom},
                                                    {"ran-out", Kind::kRanOut},
                                                    {"owes", Kind::kOwes},
                                                    {"owing", Kind::kOwing},
                                                    {"closed", Kind::kClosed},
                                                    {"close-failed", Kind::kCloseFailed},
                                                    {"cut-off", Kind::kCutOff},
                                                    {"close-lost", Kind::kCloseLost},
                                                    {"where", Kind::kWhere},
                                                    {"fetching", Kind::kFetching},
                                                    {"fetch-failed", Kind::kFetchFailed},
                                                    {"store-wait", Kind::kStoreWait}};
  return ReadWord(command, text, words);
}

job::Thresholds ReadThresholds(Command& c) {
  job::Thresholds t;
  if (c.Has("error-threshold")) t.error_threshold = c.Number("error-threshold");
  if (c.Has("failed-count")) t.allowed_failed_count = c.Number("failed-count");
  if (c.Has("failed-percent")) {
    t.allowed_failed_percent = static_cast<double>(c.Number("failed-percent"));
  }
  return t;
}

coordinator::CoordinatorLimits ReadLimits(Command& c) {
  coordinator::CoordinatorLimits limits;
  const auto whole = [&c](const char* key, uint32_t otherwise) {
    return static_cast<uint32_t>(c.Number(key, otherwise));
  };
  const auto time = [&c](const char* key, Duration otherwise) {
    return c.Has(key) ? seconds(c.Number(key)) : otherwise;
  };
  limits.nodes = whole("nodes", limits.nodes);
  limits.processes = whole("processes", limits.processes);
  limits.spec.run_max_try = static_cast<int32_t>(whole("tries", 3));
  limits.max_losses = whole("losses", limits.max_losses);
  limits.speculation = c.Flag("speculation");
  limits.spec.isolate_failures = c.Flag("isolate");
  limits.rules.short_return_fails = c.Flag("short-return-fails");
  limits.slow_least = time("slow", limits.slow_least);
  limits.spec.progress_update_timeout = time("progress-timeout", seconds(300));
  if (c.Has("init-timeout")) limits.spec.init_timeout = seconds(c.Number("init-timeout"));
  limits.spec.first_task_creation_timeout =
      time("first-task-timeout", limits.spec.first_task_creation_timeout);
  limits.spec.shutdown_timeout = time("shutdown-timeout", limits.spec.shutdown_timeout);
  limits.rules.append_row = !c.Flag("summary-only");
  limits.rules.thresholds = ReadThresholds(c);
  return limits;
}

std::vector<job::Finished> ReadFinished(Command& c, const job::JobState& state) {
  using Kind = job::Finished::Kind;
  std::vector<job::Finished> finished;
  for (const auto& [key, kind] : {std::pair{"done", Kind::kSucceeded},
                                  {"failed", Kind::kFailed},
                                  {"returned", Kind::kReturned}}) {
    for (const std::string& text : c.List(key)) {
      const job::LeaseName name = ReadLease(c, text);
      job::Finished done = coordinator::CoordinatorHarness::Done(name, kind);
      done.process = static_cast<uint32_t>(c.Number("process", 0));
      if (kind == Kind::kSucceeded) {
        const uint64_t items = state.known(name.id) ? state.batch(name.id).items : 1;
        done.items_succeeded = static_cast<uint32_t>(c.Number("items", items));
        done.items_skipped = static_cast<uint32_t>(c.Number("skipped", 0));
        done.rows_offset = c.Number("offset", 0);
      } else if (kind == Kind::kFailed) {
        done.cause = ReadCause(c, c.Text("cause", "run"));
      }
      finished.push_back(done);
    }
  }
  return finished;
}

}  // namespace parallelrun::trace
