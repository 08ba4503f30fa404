// What a run tells programs (docs/events.md): makes the events of what happens, each once. It knows
// what was told already, nothing of processes. Pure but for the stream, and for failures.jsonl that
// is read at the end; for one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/time.h"
#include "cli/failures_table.h"
#include "cli/run/event_stream.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {

class RunEvents {
 public:
  static constexpr int kVersion = 1;
  static constexpr size_t kMostFailures = 10'000;

  // `stream` must outlive it; nullptr: nobody listens. `seconds` of the events are since `started`.
  RunEvents(EventStream* stream, Instant started) : stream_(stream), started_(started) {}

  void Start(const LocalJob& job, Instant now);
  // An event with a text, or none.
  void Say(const char* event, const std::string& text, Instant now);
  void Plain(const char* event, Instant now);
  // Why there is no progress yet.
  void Waiting(const std::string& text, Instant now);
  // `change` of a node, or of the coordinator.
  void Node(size_t index, const char* change, const std::string& text, Instant now);
  void Coordinator(const char* change, const std::string& text, Instant now);
  void Stopping(bool at_once, Instant now);
  // As docs/coordinator-api.md has it.
  void Progress(const nlohmann::json& progress, Instant now);
  // A failed attempt. What was told already is not told again.
  void Failure(const FailedLine& failed, Instant now);
  // The last one, behind what failed and was not told yet. `last`: the progress that was heard
  // last; `why`: what kept it from starting or going on, "": it has a verdict, or was stopped.
  void End(int exit, const std::optional<nlohmann::json>& last, const std::string& why,
           const std::string& logs, const NextCommands& next, Instant now);

 private:
  void Add(const char* event, nlohmann::json fields, Instant now,
           EventStream::Keep keep = EventStream::Keep::kWhileThereIsRoom);
  void Write(const std::string& line, EventStream::Keep keep);
  void TellNew(const nlohmann::json& progress, const char* event, size_t& told, Instant now);
  void TellFailuresOf(const std::string& logs, Instant now);
  double Seconds(Instant now) const;

  EventStream* const stream_;
  const Instant started_;
  std::string waiting_;
  std::string phase_;
  std::string paused_;
  std::string store_waits_;
  std::string warning_;
  size_t columns_told_ = 0;
  size_t left_out_told_ = 0;
  nlohmann::json progress_;  // as it was told last
  Instant progress_at_;
  std::set<std::pair<uint64_t, uint32_t>> failures_told_;  // id and attempt
  uint64_t failures_left_out_ = 0;
};

}  // namespace parallelrun::cli
