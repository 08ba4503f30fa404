// Told: what the coordinator and the node's own log hear beside results. All of it is bounded: the
// coordinator may be away while processes keep dying, and scripts may report without end.
// Pure; not thread-safe. Views in a request are valid until the next method is called.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "agent/core/agent_types.h"
#include "job/node_messages.h"

namespace parallelrun::agent {

// What the coordinator is to hear of a process, or with 0 of the node.
struct Event {
  uint32_t process = 0;
  job::ProcessEvent::Kind kind = job::ProcessEvent::Kind::kReady;
  std::string message{};
  std::string log{};
};

class Told {
 public:
  static constexpr size_t kMaxEvents = 1000;
  static constexpr size_t kMaxMetrics = 800;  // of them: they never crowd out what matters
  static constexpr size_t kMaxNotes = 10'000;

  // Dropped above the bound.
  void Add(Event event);
  void Add(std::vector<Event> events);
  // False for a metric above its bound, which is counted and to be dropped.
  bool Takes(job::ProcessEvent::Kind kind);

  bool any() const { return !events_.empty(); }
  // Puts what fits into a report, which is under way then. True if that is all there is.
  bool Report(job::ExchangeRequest& request);
  void Heard();                        // the report was answered
  void NotHeard() { under_way_ = 0; }  // it was not
  void Clear();

  // For the log of the node; at most kMaxNotes between two calls, the later ones are lost.
  void Note(MiniBatchNote note);
  void TakeNotes(std::vector<MiniBatchNote>& notes);

  uint64_t dropped_metrics() const { return dropped_metrics_; }

 private:
  std::deque<Event> events_;
  size_t under_way_ = 0;  // of them, in the report that is not answered yet
  std::vector<MiniBatchNote> notes_;
  uint64_t dropped_metrics_ = 0;
};

}  // namespace parallelrun::agent
