// Events for people (`kubectl describe`), with client-go's limits, so that a job in trouble cannot
// flood the API server. Best effort: never waits, never fails.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "base/thread.h"
#include "base/time.h"
#include "kube/client.h"

namespace parallelrun::kube {

// client-go's figures (tools/record).
inline constexpr size_t kEventQueue = 1000;
inline constexpr int kEventTries = 12;
inline constexpr Duration kEventRetry = seconds(10);
inline constexpr size_t kEventMemory = 4096;  // keys remembered
inline constexpr int kSimilarEvents = 10;     // more of them are combined
inline constexpr Duration kSimilarWindow = seconds(600);
inline constexpr double kEventBurst = 25;               // an object, then
inline constexpr Duration kEventRefill = seconds(300);  // one each
inline constexpr size_t kEventMessage = 1024;           // bytes, as the API server allows

enum class EventType { kNormal, kWarning };

struct Event {
  // The object that it is about; name_space may be "" for one without.
  std::string api_version;
  std::string kind;
  ObjectName object;
  std::string uid;
  std::string resource_version;  // may be ""
  EventType type = EventType::kNormal;
  std::string reason;  // "PodCreated": one word
  std::string message;
};

// Decides what becomes of an event. No threads, no network; not thread-safe.
class EventCorrelator {
 public:
  explicit EventCorrelator(std::string component) : component_(std::move(component)) {}

  struct Write {
    bool create = true;  // otherwise: a merge patch of the Event `name`
    ObjectName name;
    nlohmann::json object;  // the whole Event (also when patching: if it is gone, create it)
    nlohmann::json patch;
  };
  // What to write; nothing when the object has had too many.
  std::optional<Write> Correlate(const Event& event, Instant now, WallTime wall);

 private:
  struct Similar {  // events that differ in their message only
    std::set<std::string> messages;
    Instant last{};
  };
  struct Bucket {
    double tokens = kEventBurst;
    Instant filled{};
  };
  struct Known {  // an Event that was written
    std::string name;
    int64_t count = 0;
    std::string first_time;
  };
  // The kEventMemory keys used last.
  template <typename T>
  class Recent {
   public:
    T& operator[](const std::string& key);

   private:
    std::list<std::pair<std::string, T>> order_;  // newest first
    std::unordered_map<std::string, typename std::list<std::pair<std::string, T>>::iterator> by_;
  };

  const std::string component_;
  Recent<Similar> similar_;
  Recent<Bucket> buckets_;
  Recent<Known> known_;
};

// Writes events on a thread of its own. Thread-safe.
class EventRecorder {
 public:
  // `client` must outlive it. `component` is the event's source.
  EventRecorder(Client& client, std::string component,
                std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>());
  ~EventRecorder();  // Stop()

  // Never blocks; when 1,000 wait, the event is dropped and counted.
  void Record(Event event);
  uint64_t dropped() const;
  // Gives what waits up to `flush` to be written, then ends.
  void Stop(Duration flush = seconds(1));

 private:
  void Run();
  void Write(const EventCorrelator::Write& write);
  bool Wait(Duration duration);

  Client& client_;
  const std::shared_ptr<const Clock> clock_;
  EventCorrelator correlator_;  // Run's thread only

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::deque<Event> queue_;
  bool busy_ = false;
  bool stop_ = false;
  uint64_t dropped_ = 0;
  Thread thread_;
};

}  // namespace parallelrun::kube
