// What a job of a cluster tells, to programs (docs/events.md) and people, made of its object as the
// API server has it. Pure but for the stream; one thread.
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

// How far a job is, as the coordinator of a local run says it (docs/coordinator-api.md), as far as
// the status does; null where it says nothing yet.
nlohmann::json ProgressOf(const nlohmann::json& job, WallTime wall);
// What its nodes wait for; "" where they do not.
std::string ObstacleOf(const nlohmann::json& job);

// Hears of a job of a cluster from when it was found to its end.
class JobFollower {
 public:
  JobFollower() = default;
  virtual ~JobFollower() = default;
  JobFollower(const JobFollower&) = delete;
  JobFollower& operator=(const JobFollower&) = delete;

  // Each second, whether anything is new or not.
  virtual void Seen(const nlohmann::json& job, WallTime wall, Instant now) = 0;
  // Why nothing can be seen.
  virtual void Waiting(const std::string& text, Instant now) = 0;
  // The last one. `job` is null where none was seen.
  virtual void End(const nlohmann::json& job, const ClusterEnd& end, Instant now) = 0;
};

// Tells programs: each thing once.
class ClusterEvents final : public JobFollower {
 public:
  // `stream` must outlive it. `seconds` of the events are since `started`.
  ClusterEvents(EventStream& stream, Instant started) : stream_(stream), started_(started) {}

  // `context` as it was typed.
  void Start(const nlohmann::json& job, const std::string& context, Instant now);
  void Note(const std::string& text, Instant now);
  // Phase, obstacles and progress, as far as they are new.
  void Seen(const nlohmann::json& job, WallTime wall, Instant now) override;
  void Waiting(const std::string& text, Instant now) override;
  void End(const nlohmann::json& job, const ClusterEnd& end, Instant now) override;

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
