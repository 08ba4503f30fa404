// Keys that need work, with client-go's semantics: a key is handed to one worker at a time; adding
// it again while it waits changes nothing, while it is worked on makes it come once more
// afterwards. Urgent keys go before the others, but for every fourth that is taken.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/time.h"

namespace parallelrun::kube {

// client-go's figures (util/workqueue/default_rate_limiters.go).
inline constexpr Duration kFirstRetry = milliseconds(5);  // doubles with every failure
inline constexpr Duration kLastRetry = seconds(1000);

// The rules, without threads and clock. Not thread-safe. Times are given; deadlines are inclusive.
class WorkQueueCore {
 public:
  struct Taken {
    std::string key;
    Duration waited;  // since it was added
  };

  void Add(const std::string& key, Instant now, bool urgent = false);
  // Adds at `when`; of two such times the earlier is kept.
  void AddAt(const std::string& key, Instant when, Instant now);
  // After 5 ms x 2^n, n being the failures since Forget, at most 1,000 s. The time chosen.
  Instant AddRateLimited(const std::string& key, Instant now);
  void Forget(const std::string& key) { failures_.erase(key); }
  int Failures(const std::string& key) const;
  // Moves what is due into the queue, and takes the first. Done must follow.
  std::optional<Taken> Take(Instant now);
  void Done(const std::string& key, Instant now);
  // From now on adding does nothing, and what waits for a time is dropped.
  void ShutDown();

  bool shut_down() const { return shut_down_; }
  size_t depth() const { return queue_.size() + urgent_.size(); }
  size_t processing() const { return processing_.size(); }
  size_t waiting() const { return waiting_.size(); }
  // When the next waiting key is due.
  std::optional<Instant> NextDue() const;

 private:
  void Due(Instant now);

  std::deque<std::string> queue_;
  std::deque<std::string> urgent_;
  uint64_t taken_ = 0;
  std::unordered_map<std::string, Instant> dirty_;  // queued, or to be queued at Done; since when
  std::unordered_set<std::string> processing_;
  std::unordered_map<std::string, Instant> waiting_;
  std::set<std::pair<Instant, std::string>> by_time_;  // of waiting_
  std::unordered_map<std::string, int> failures_;
  bool shut_down_ = false;
};

// For metrics; called with the queue locked, so they must be quick. Empty ones are left out.
struct WorkQueueHooks {
  std::function<void()> added;
  std::function<void()> retried;
  std::function<void(size_t)> depth;
  std::function<void(Duration)> waited;  // in the queue
  std::function<void(Duration)> worked;  // from Get to Done
};

// Thread-safe.
class WorkQueue {
 public:
  explicit WorkQueue(std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>(),
                     WorkQueueHooks hooks = {});

  void Add(const std::string& key, bool urgent = false);
  void AddAfter(const std::string& key, Duration after);
  void AddRateLimited(const std::string& key);
  // After a success, and before AddAfter: the next failure waits 5 ms again.
  void Forget(const std::string& key);
  int Failures(const std::string& key) const;

  // Waits for a key; nothing once the queue is shut down and empty. Done(key) must follow.
  std::optional<std::string> Get();
  void Done(const std::string& key);

  // Takes no more keys; Get still hands out those that are queued.
  void ShutDown();
  // ShutDown, then waits until nothing is queued or worked on; false: `limit` passed before.
  bool Drain(Duration limit);

  size_t depth() const;
  size_t processing() const;
  // How long the longest work in progress has taken.
  Duration LongestWork() const;

 private:
  void Depth();
  void OneMore();

  const std::shared_ptr<const Clock> clock_;
  const WorkQueueHooks hooks_;
  mutable std::mutex mutex_;       // guards what follows
  std::condition_variable ready_;  // for Get: there is a key, or another time to wait for
  std::condition_variable idle_;   // for Drain
  WorkQueueCore core_;
  std::unordered_map<std::string, Instant> begun_;
};

}  // namespace parallelrun::kube
