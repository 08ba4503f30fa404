// Talks to the coordinators of running jobs: pulls the progress of each about every two seconds,
// and hands over what the operator wants of it (docs/coordinator-api.md). On threads of its own,
// never the reconcile workers'; at most half of them wait for coordinators that did not answer the
// last time (or never yet), so that dead ones hold up nobody.
//
// Thread-safe. Answers come from the users' pods and are bounded: 1 MiB, 128 levels of JSON, 5 s.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "base/time.h"
#include "rest_client/client.h"

namespace parallelrun::operators {

// Where the present coordinator of a job is, and how to know it.
struct CoordinatorAddress {
  std::string pod_uid;
  std::string url;          // "https://10.2.0.7:8443"
  std::string server_name;  // that the certificate must carry
  std::string ca_pem;
  std::string token;
  bool operator==(const CoordinatorAddress&) const = default;
};

// The last word of a coordinator.
struct CoordinatorAnswer {
  std::string pod_uid;                             // of the coordinator that gave it
  std::shared_ptr<const nlohmann::json> progress;  // null: never answered
  WallTime at{};                                   // of `progress`
  std::string error;                               // why the latest call failed, or ""
  WallTime asked_since{};                          // when it was asked for the first time
  std::string acknowledged;                        // the last control body that it took, or ""
  WallTime acknowledged_at{};                      // when it first did; `at` of that answer
};

// The part of a progress whose change matters at once; the rest are numbers that grow.
std::string Significant(const nlohmann::json& progress);

struct CoordinatorPoolOptions {
  int threads = 8;
  Duration deadline = seconds(5);          // of one call
  Duration longest_backoff = seconds(30);  // between calls that fail
  Duration quiet = seconds(5);             // between two calls of `changed` for mere numbers
  std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>();
};

class CoordinatorPool {
 public:
  // Called on the pool's threads when a job's answer has changed.
  using Changed = std::function<void(const std::string& job)>;

  CoordinatorPool(CoordinatorPoolOptions options, Changed changed);
  ~CoordinatorPool();  // cancels the calls in flight

  // Pulls from `address` about every `period` from now on; the same address again changes only
  // the period.
  void Watch(const std::string& job, const CoordinatorAddress& address, Duration period);
  // PUTs `control` (JSON text) at once, and again in place of a pull while it gets no answer,
  // unless another replaces it. Nothing happens without Watch before, nor when it is what the
  // coordinator has taken last, and has not forgotten since. Whether it is news.
  bool Control(const std::string& job, const std::string& control);
  void Forget(const std::string& job);
  std::optional<CoordinatorAnswer> Latest(const std::string& job) const;
  size_t size() const;

 private:
  struct Entry;
  using Due = std::set<std::pair<Instant, std::string>>;

  void Run();
  std::shared_ptr<Entry> Take(std::unique_lock<std::mutex>& lock);
  struct Outcome;
  Outcome Call(Entry& entry, const std::string& control);
  void Store(Entry& entry, Outcome outcome, const std::string& control);
  void Schedule(Entry& entry, Instant when);
  void Void(Entry& entry);

  const CoordinatorPoolOptions options_;
  const Changed changed_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stop_ = false;
  std::map<std::string, std::shared_ptr<Entry>> entries_;
  Due healthy_;
  Due suspect_;  // did not answer the last call, or none so far
  int suspects_in_flight_ = 0;
  std::vector<Thread> threads_;
};

}  // namespace parallelrun::operators
