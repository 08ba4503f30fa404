// Ending leads a job from its last mini-batch to its end: drain, the processes' shutdown(), the
// verdict, which counts once it is durable and no newer epoch was seen since, and the output. It
// owns the phase and the thresholds that the verdict goes by; what else calls for a verdict is for
// its caller. Pure but for the journal; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "coordinator/core/closing.h"
#include "coordinator/core/journal.h"
#include "job/losses.h"
#include "job/node_messages.h"
#include "job/shutdowns.h"

namespace parallelrun::coordinator {

class Ending {
 public:
  enum class Phase {
    kRunning,
    kDraining,    // leases nothing; ends when no node is left
    kClosing,     // all is settled: processes run shutdown(), and the verdict waits for them
    kDeciding,    // the verdict is appended, not durable yet
    kFinalizing,  // the verdict is durable: the output is to be published
    kEnded,       // nothing more will be written
  };
  // What an event is to be followed by.
  struct Then {
    bool look = false;  // for a newer epoch
    bool wake = false;  // whoever waits: there is something to say to all
  };

  // Where the journal has a verdict already, what is left is to publish, and to tell.
  Ending(const job::FailureRules& rules, Duration shutdown_timeout, Journal& journal);

  Phase phase() const { return phase_; }
  const job::FailureRules& rules() const { return rules_; }
  // What a node is told that is part of the job, or is not any more.
  job::Directive DirectiveFor(bool expected) const;
  // Told of kClose once, an agent stays and asks again and again.
  Closing& closing() { return closing_; }
  const Closing& closing() const { return closing_; }

  // --- people
  void Drain();
  // Records them, unless they are in force already. False: nothing has changed.
  bool SetThresholds(const job::Thresholds& thresholds, int64_t wall_us);

  // --- shutdown() of processes
  void TakeShutdown(uint32_t node, const job::ProcessEvent& event);
  // They will not be heard of any more.
  void LoseShutdowns(const std::vector<job::ProcessId>& processes, const std::string& why);

  // --- the verdict; the first one stands
  void Conclude(const job::Verdict& verdict);
  // All is settled, as `verdict` says: concludes, once the processes have run shutdown().
  Then Finish(const job::Verdict& verdict, WorkInstant worked);

  // --- what comes with time
  Then Durable(Instant now);
  // A look for a newer epoch that began at `begun` found none, or could not be made.
  Then Looked(Instant begun, bool none);
  // The verdict is durable in this epoch, and not told before a look has followed.
  bool verdict_durable() const { return verdict_durable_at_.has_value(); }

  // --- the output
  void Publish(const job::PublishedRecord& published);
  void NothingToPublish() { phase_ = Phase::kEnded; }

 private:
  job::FailureRules rules_;
  Journal& journal_;
  Phase phase_ = Phase::kRunning;
  Closing closing_;
  bool drains_ = false;  // as somebody has asked
  uint64_t verdict_position_ = 0;
  std::optional<Instant> verdict_durable_at_;
  uint64_t published_position_ = 0;
};

}  // namespace parallelrun::coordinator
