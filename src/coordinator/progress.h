// What `GET /v1/progress` and `GET /metrics` say (docs/coordinator-api.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/coordinator.h"
#include "job/ids.h"

namespace parallelrun::coordinator {

inline constexpr size_t kErrorsTold = 5;

// "Running": `state` of the progress.
std::string StateName(const Coordinator& coordinator);

// Until the last mini-batch is done; nullopt while that is not known, or not how many there are.
std::optional<Duration> TimeLeft(const Coordinator& coordinator);

// What the edge knows of a job besides its coordinator.
struct ProgressFacts {
  uint32_t epoch = 0;
  WallTime started = {};        // of this coordinator
  uint64_t settled_before = 0;  // mini-batches that were settled when it started
  std::string warning{};
  std::string late_warning{};                    // what of it came after the start
  std::map<std::string, std::string> metrics{};  // name to last value, as JSON text
  std::map<uint32_t, std::string> columns{};     // of each input whose types are decided
  std::vector<std::string> left_out{};           // names in the inputs that are no data
  std::vector<std::string> first_lost{};         // items, by name
  std::map<job::BatchId, std::string> items{};   // what a mini-batch is made of
  std::string store_waits{};                     // which stores keep the job waiting, and how
};

// JSON text.
std::string ProgressJson(const Coordinator& coordinator, const ProgressFacts& facts, Instant now);

// What `GET /v1/failures?after=N` answers, as JSON lines: failed attempts behind that one,
// kFailuresTold at most, each with up to kPathsTold of its files where the plan is at hand.
inline constexpr size_t kFailuresTold = 200;
inline constexpr size_t kPathsTold = 20;
std::string FailureLines(const Coordinator& coordinator, plan::PlanStore& plan, uint32_t epoch,
                         uint64_t after);

// Prometheus text format.
std::string Metrics(const Coordinator& coordinator, uint32_t epoch);

}  // namespace parallelrun::coordinator
