// One leader among several processes, by a Lease (coordination.k8s.io/v1), with client-go's rules.
// Not a fence: a leader that was frozen may act for a moment beside its successor, so everything it
// does carries preconditions or fixed names. A leader that lost its lease must end its process.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/thread.h"
#include "base/time.h"
#include "kube/client.h"

namespace parallelrun::kube {

// lease > renew deadline > 1.2 x retry period.
struct ElectionTimes {
  Duration lease = seconds(15);
  Duration renew_deadline = seconds(10);
  Duration retry_period = seconds(2);
};
Status CheckElectionTimes(const ElectionTimes& times);

// A Lease's spec, and its resourceVersion.
struct LeaseRecord {
  std::string holder;
  int duration_seconds = 0;
  std::string acquire_time;  // as the server writes them; never compared with a clock
  std::string renew_time;
  int transitions = 0;
  std::string resource_version;

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};
LeaseRecord LeaseRecordOf(const nlohmann::json& lease);
nlohmann::json LeaseObject(const ObjectName& name, const LeaseRecord& record);

// The rules, without threads and network. Not thread-safe. Only `now`, this process's own clock,
// decides: a foreign lease is over when its record has not changed for its whole duration.
class ElectionCore {
 public:
  ElectionCore(std::string identity, ElectionTimes times);

  // What the server holds, read at `now`; nothing: no such Lease.
  void Observed(const std::optional<LeaseRecord>& record, Instant now);
  // The record to create (nothing was observed) or to update, or nothing while somebody else leads.
  std::optional<LeaseRecord> Wanted(Instant now, WallTime wall) const;
  // The write, begun at `begun`, was stored so.
  void Written(const LeaseRecord& stored, Instant begun);
  // The empty record that gives the lease up; only while leading.
  std::optional<LeaseRecord> Released(WallTime wall) const;

  // Leading, and the renew deadline has not passed. Once false after true it must stay so: the
  // caller ends.
  bool Leading(Instant now) const;
  // The end of the present term; only while leading.
  Instant Deadline() const { return renewed_ + times_.renew_deadline; }
  // The next write may go without a read before it.
  bool CanUpdateBlindly() const { return leading_ && record_.has_value(); }
  bool exists() const { return record_.has_value(); }
  // Who leads as far as known; "" nobody.
  std::string holder() const { return record_ ? record_->holder : ""; }

 private:
  const std::string identity_;
  const ElectionTimes times_;
  std::optional<LeaseRecord> record_;
  Instant observed_{};  // when record_ last changed
  bool leading_ = false;
  Instant renewed_{};
};

struct ElectionOptions {
  ObjectName lease;      // its namespace and name
  std::string identity;  // unique to this process: "<pod>_<random>"
  ElectionTimes times;
  // On the elector's thread; must not block.
  std::function<void()> on_started;
  std::function<void()> on_lost;  // not called by Stop. End the process
  std::function<void(const std::string& holder)> on_new_leader;
  std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>();
};

// Runs the election on a thread of its own.
class LeaderElector {
 public:
  // kInvalid for times that break the rule. `client` must outlive it.
  static Result<std::unique_ptr<LeaderElector>> Start(Client& client, ElectionOptions options);
  ~LeaderElector();  // Stop(false)

  // False from the moment on that the renew deadline has passed, whatever the thread does.
  bool leading() const;
  // Ends the election within one call's time-out (renew_deadline / 2). `release`: gives the lease
  // up, so that the next leader need not wait; only once nothing acts as leader any more.
  void Stop(bool release);

 private:
  LeaderElector(Client& client, ElectionOptions options);
  void Run();
  bool TryOnce();
  bool Write(const LeaseRecord& record, Instant begun, Duration limit);
  void Tell();
  void Release();

  Client& client_;
  const ElectionOptions options_;
  ElectionCore core_;  // Run's thread only
  std::string told_;   // the last holder that on_new_leader heard

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool stop_ = false;
  bool release_ = false;
  bool leading_ = false;
  Instant deadline_{};  // of the term, while leading_
  Thread thread_;
};

}  // namespace parallelrun::kube
