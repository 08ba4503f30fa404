// Availability says who may run which mini-batch until when: one owner of all that keeps a
// mini-batch from a node, and one value for each mini-batch (docs/architecture.md, "Availability").
// What became of one is JobState's business; this lives as long as its epoch. Pure: no clock, no
// I/O; not thread-safe. Times are working time: what the coordinator itself lost is not in them.
//
// Invariants: a mini-batch has at most one live lease, or two on different nodes at the tail; a
// settled one has none; a node that holds a suspect holds only suspects, and no more of them than
// any of them may have for company; nothing is granted while a block is on it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "job/blocks.h"
#include "job/ids.h"
#include "job/job_state.h"
#include "job/leases.h"
#include "job/node_messages.h"
#include "job/ready_order.h"
#include "job/suspects.h"

namespace parallelrun::job {

struct LeaseRules {
  Duration lease = seconds(10);
  uint32_t max_try = 3;
  // Two nodes may be in run() of one mini-batch at once. Without it, what may be in run()
  // somewhere is blocked, and a new epoch gives nothing away before it knows what is.
  bool speculation = false;
};

// Who asks for a lease, and in which of its requests.
struct Asker {
  uint32_t node = 0;
  Incarnation incarnation;
  uint64_t request = 0;
};

class Availability {
 public:
  // Losses after which a mini-batch is leased alone on its node.
  static constexpr uint32_t kSuspectLosses = 2;

  enum class State : uint8_t {
    kUnknown,  // not planned; a piece whose whole is not split
    kPlanned,  // its chunk is not durable
    kReady,    // anybody may get it
    kApart,    // a suspect: when nothing is ready, to a node that may have it
    kBlocked,  // nobody may get it
    kLeased,
    kTwice,  // two leases, on two nodes
    kSplit,  // its pieces stand for it
    kSettled,
  };
  struct Value {
    State state = State::kUnknown;
    Blocks::Reasons blocks{};      // may wait under a lease too
    std::optional<Lease> lease{};  // the earlier one of two
  };

  // `state` must outlive this; all that it has planned is durable. Fences are (epoch, 1),
  // (epoch, 2), … What an earlier epoch recorded as started is withheld. `first`: there was none.
  Availability(const JobState& state, uint32_t epoch, const LeaseRules& rules, bool first,
               WorkInstant now);

  Value Of(BatchId id) const;

  // --- what the ledger says; call these when it was applied to the state
  // A chunk was appended at `position`, and all below `end` are planned now.
  void Plan(uint64_t position, BatchId end) { chunks_.emplace_back(position, end); }
  // What waited for that may be leased.
  void Durable(uint64_t position);
  // It is settled: every lease and block ends.
  void Settle(BatchId id);
  // Likewise, and its two pieces may be leased, once `position` is durable.
  void Split(BatchId id, uint64_t position);
  // The attempt of that lease failed, and there are tries left, once `position` is durable.
  void Retry(const LeaseName& name, uint64_t position);
  // More is held against it than before.
  void Reconsider(BatchId id);

  // --- time
  // Ends every lease whose deadline is at or before `now`, and returns them.
  std::vector<Held> Expire(WorkInstant now);
  // Blocks whose time is over fall. Returns what was withheld until now: nobody has offered it.
  std::vector<BatchId> TimePassed(WorkInstant now);
  // The node's connection broke: its leases end at `now + grace` unless renewed.
  void Shorten(uint32_t node, WorkInstant now, Duration grace) {
    leases_.Shorten(node, now + grace);
  }

  // --- what may be in run() somewhere
  // Somebody may be in run() of it until then.
  void BlockUntil(BatchId id, WorkInstant until);
  // A node said that it has it, and was refused. For long after the epoch began it may not hear.
  void BlockRefused(BatchId id, WorkInstant now);
  // Nodes may be in run() since an earlier epoch, and not all of them were heard: nothing is to be
  // granted. Over after a lease and a tenth at the latest.
  bool awaits_nodes() const { return awaits_nodes_; }
  void OpenGate();

  // --- leases
  // Something may be had since the last call that could not be had before.
  bool TakeFreed() { return std::exchange(freed_, false); }
  // There is something that one node or another may get.
  bool HasAny() const { return ready_.size() > 0 || !apart_.empty(); }
  // Something is at work for longer than `slow`, and may get a second lease.
  bool HasSlow(Duration slow, WorkInstant now) const;
  // At least as many as Grant would give the node now; 0 when it would give none.
  uint64_t Available(uint32_t node) const;
  // Leases the lowest that is ready, else a suspect; nullopt when there is none for this node.
  std::optional<LeaseName> Grant(const Asker& asker, WorkInstant now);
  // A second lease of the mini-batch that has run longest, and longer than `slow`, on another node;
  // nullopt when there is none, or a failure of both leases could be a try too many.
  std::optional<LeaseName> GrantSecond(const Asker& asker, Duration slow, WorkInstant now);
  // A new fence for a mini-batch that the node holds from an earlier epoch or incarnation; nullopt
  // when it is settled, not planned, leased to another node, or would keep a suspect company.
  std::optional<Fence> Adopt(const Asker& asker, BatchId id, bool started, WorkInstant now);
  // False when the lease is not live or not this incarnation's.
  bool Renew(const Incarnation& incarnation, const HeldLease& held, WorkInstant now);
  // A live lease of that name is this incarnation's.
  bool Has(const Incarnation& incarnation, const LeaseName& name) const;
  // To anybody.
  bool Leased(BatchId id) const { return leases_.Has(id); }
  // Another lease of the same mini-batch is live.
  bool LiveBeside(const LeaseName& name) const;
  // Ends a lease, if it is live.
  void End(const LeaseName& name);

  std::vector<Held> HeldBy(uint32_t node) const { return leases_.OfNode(node); }
  size_t HeldCount(uint32_t node) const { return leases_.CountOf(node); }
  // How many mini-batches a node may hold at most while it holds this one. Anything but kAnyCompany
  // makes it a suspect: it is leased when nothing else is.
  uint32_t Company(BatchId id) const;

  // --- counts
  // Mini-batches with a lease, and how many of them are pieces.
  size_t live() const { return leases_.batches(); }
  size_t live_pieces() const { return leases_.pieces(); }
  // What has been in run() for longest, as far as was heard. Looks at each lease.
  std::optional<Held> Slowest() const;
  // Durable, not settled, not leased.
  uint64_t pending() const;

  // What is not as the invariants say, "": all is. Counts everything: for tests.
  std::string Check() const;

 private:
  using Live = Leases::Live;

  bool Known(BatchId id) const { return IsPiece(id) ? state_.known(id) : id < durable_; }
  bool Suspected(BatchId id) const { return Company(id) != kAnyCompany; }
  uint32_t CompanyOn(uint32_t node) const;
  bool HoldsSuspect(uint32_t node) const { return CompanyOn(node) != kAnyCompany; }

  // Nothing is in its way any more but, perhaps, blocks: ready or apart without one.
  void Back(BatchId id);
  // Neither ready nor apart any more.
  void Take(BatchId id);
  void Free(const std::vector<BatchId>& ids);
  std::optional<BatchId> NextSuspect(uint32_t node) const;
  Live& Lend(BatchId id, const Asker& asker, WorkInstant now);
  void EndLive(Live& live);
  void AllowSecond(BatchId id);
  Live* FindLive(const Incarnation& incarnation, const LeaseName& name) const;

  const JobState& state_;
  const uint32_t epoch_;
  const LeaseRules rules_;
  uint64_t last_fence_ = 0;
  std::deque<std::pair<uint64_t, BatchId>> chunks_;  // not durable: position, ids below are in it
  BatchId durable_ = 0;                              // whole ids below are
  ReadyOrder ready_;
  Suspects apart_;
  Blocks blocks_;
  Leases leases_;
  const WorkInstant withhold_until_;
  bool awaits_nodes_;
  bool freed_ = false;
};

}  // namespace parallelrun::job
