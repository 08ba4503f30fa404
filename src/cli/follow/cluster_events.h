// What a job of a cluster tells programs (docs/events.md), made of its object as the API server has
// it: each thing once. Pure but for the stream; one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/time.h"
#include "cli/run/event_stream.h"

namespace parallelrun::cli {

// How a job of a cluster has ended.
struct ClusterEnd {
  int exit = 0;
  std::string state;   // Succeeded, Failed, or NotStarted: it was refused as it is written
  std::string reason;  // of its condition
  std::string message;
};

// nullopt while it goes on. `losses_allowed`: a threshold of the job speaks of them, so that they
// are no exit status of their own.
std::optional<ClusterEnd> EndOf(const nlohmann::json& job, bool losses_allowed);

class ClusterEvents {
 public:
  // `stream` must outlive it. `seconds` of the events are since `started`.
  ClusterEvents(EventStream& stream, Instant started) : stream_(stream), started_(started) {}

  // `context` as it was typed.
  void Start(const nlohmann::json& job, const std::string& context, Instant now);
  void Note(const std::string& text, Instant now);
  // Phase, obstacles and progress, as far as they are new.
  void Seen(const nlohmann::json& job, WallTime wall, Instant now);
  // Why nothing can be seen.
  void Waiting(const std::string& text, Instant now);
  // The last one. `job` is null where none was seen.
  void End(const nlohmann::json& job, const ClusterEnd& end, Instant now);

 private:
  void Add(const char* event, nlohmann::json fields, Instant now, EventStream::Keep keep);
  void TellStoreWaits(const nlohmann::json& ready, Instant now);

  EventStream& stream_;
  const Instant started_;
  std::string phase_;
  std::string warning_;
  std::string waiting_;
  std::string store_waits_;
  nlohmann::json progress_;  // as it was told last
};

}  // namespace parallelrun::cli
