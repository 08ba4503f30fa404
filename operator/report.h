// What a coordinator says of its job (docs/coordinator-api.md, GET /v1/progress), read leniently:
// it comes over the network, or from a pod's termination message. Pure; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/status/status.h"

namespace parallelrun::operators {

struct ReportVerdict {
  bool succeeded = false;
  std::string reason, message;
};

// What it knows of a node that has come to it.
struct ReportNode {
  int32_t index = 0;
  bool registered = false;
  bool silent = false;   // it said nothing for a lease, and nobody has told of its end
  int64_t pod = 0;       // the incarnation of its newest pod that has come; 0: not told
  bool gave_up = false;  // of init()
  int64_t processes = 0;
  int64_t held = 0;  // mini-batches
};

struct Report {
  int64_t control_generation = 0;  // last generation that it was told and applied
  std::string state;               // Starting, Running, Draining, Finalizing, Succeeded, Failed
  std::optional<int64_t> total, items_total;
  int64_t planned = 0, succeeded = 0, failed = 0, running = 0, pending = 0;
  int64_t items_succeeded = 0, items_failed = 0;
  int64_t lost = 0;  // mini-batches that failed because they ended their nodes
  bool listing_done = false;
  double per_second = 0;
  std::optional<int64_t> seconds_remaining;
  std::vector<ReportNode> nodes;
  std::vector<int32_t> registered;  // indices of nodes
  std::vector<int32_t> working;     // of those that hold mini-batches: their init() has ended
  std::vector<DistinctFailure> errors;
  std::string paused;        // why it writes no results at the moment
  std::string fetching;      // which node fetches what before it starts
  std::string init;          // for how long it has been running, on how many nodes, and where
  std::string store_waits;   // which node a store keeps waiting, and how
  std::string warning;       // what a person changed between this run's start and its continuation
  std::string late_warning;  // what has come up since its coordinator has started
  std::optional<ReportVerdict> verdict;
  std::optional<OutputStatus> output;

  // The verdict is durable and the output, if there is one, published.
  bool Ended() const { return verdict && (state == "Succeeded" || state == "Failed"); }
  // Those count for nodeRestartLimit only where some others succeed.
  int64_t FoundToEndNodes() const { return succeeded > 0 ? lost : 0; }
  int64_t Settled() const { return succeeded + failed; }
};

// Nothing when it is no JSON object. Missing keys keep their defaults.
std::optional<Report> ParseReport(const nlohmann::json& progress);

// The coordinator's termination message: {"progress": {...}, "ended": "..."} or {"error": "..."}.
struct LastWords {
  std::optional<Report> report;
  std::string error;  // why it ended too soon; also any text that is not such JSON
};
LastWords ParseLastWords(std::string_view text);

}  // namespace parallelrun::operators
