// The viewers of the live page: each gets a snapshot, then what has changed, as server-sent events
// (docs/coordinator-api.md). One event is made for all of them, and at most one waits for each: who
// has not taken it gets a snapshot later. On the loop's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/http/server.h"
#include "base/time.h"

namespace parallelrun::coordinator {

class EventStream {
 public:
  static constexpr size_t kMostViewers = 32;
  static constexpr Duration kInterval = seconds(1);
  static constexpr Duration kHeartbeat = seconds(15);

  // `make` gives the document as it is now; it is asked only while somebody looks. `epoch` tells
  // the events of this coordinator from those of the one before, which a viewer may have seen.
  EventStream(uint32_t epoch, std::function<nlohmann::json()> make)
      : epoch_(epoch), make_(std::move(make)) {}

  // Takes the request, and answers it until one of the two ends.
  void Join(const std::shared_ptr<HttpExchange>& exchange, Instant now);
  // Often: sends what is due.
  void Tick(Instant now);
  // The job is over: the last word to all.
  void End();

 private:
  struct Viewer {
    std::shared_ptr<HttpExchange> exchange;
    bool behind = true;  // gets a snapshot next
    Instant told_at;
  };

  // False: nothing has changed.
  bool Renew(Instant now);
  void Tell(Viewer& viewer, Instant now);
  std::string Snapshot() const;
  std::string Event(const char* name, const nlohmann::json& data) const;
  std::string NewestId() const;

  const uint32_t epoch_;
  const std::function<nlohmann::json()> make_;
  std::vector<Viewer> viewers_;
  nlohmann::json current_;  // null: none
  std::string delta_;       // an event
  uint64_t newest_ = 0;     // event: its number
  Instant made_at_;
};

}  // namespace parallelrun::coordinator
