// LeaseTable decides which node may run which mini-batch until when. Pure: no clock, no I/O; not
// thread-safe. Leases live in memory only; what became of a mini-batch is JobState's business.
// Invariants: a mini-batch has at most one live lease, or two on different nodes at the tail; a
// settled one has none; a node that holds a suspect holds only suspects, and no more of them than
// any of them may have for company.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <vector>

#include "base/time.h"
#include "job/ids.h"
#include "job/job_state.h"
#include "job/node_messages.h"
#include "job/suspects.h"

namespace parallelrun {

struct Lease {
  uint32_t node = 0;
  Incarnation incarnation;
  Fence fence;
  Instant deadline;  // at this instant the lease is gone
  bool started = false;
  Instant started_at = {};  // when that was heard
  uint64_t request = 0;     // number of the node's request that it was granted in answer to
  uint32_t company = JobState::kAnyCompany;  // that it may have
};

class LeaseTable {
 public:
  // Losses after which a mini-batch is leased alone on its node.
  static constexpr uint32_t kSuspectLosses = 2;

  // `state` must outlive the table; all that it has planned is durable. Fences are (epoch, 1),
  // (epoch, 2), … What an earlier epoch recorded as started is withheld.
  LeaseTable(const JobState& state, uint32_t epoch, Duration ttl);

  // Mini-batches below `end` may be leased: their chunks are durable. Never shrinks.
  void AllowBelow(BatchId end) { allowed_ = std::max(allowed_, end); }
  // The two pieces of a mini-batch that was split may be leased.
  void AllowPieces(BatchId split);
  // Maybe running on a node that was not heard of in this epoch.
  const std::set<BatchId>& withheld() const { return withheld_; }
  // They may be leased from now on.
  void EndWithholding();
  // It is not granted from HoldBack on until LetGo was called as often. It need not be planned yet.
  void HoldBack(BatchId id);
  void LetGo(BatchId id);

  // At least as many as Grant would give the node now; 0 when it would give none.
  uint64_t Available(uint32_t node) const;
  // Leases the lowest pending mini-batch; nullopt when there is none for this node.
  std::optional<LeaseName> Grant(uint32_t node, const Incarnation& incarnation, Instant now,
                                 uint64_t request = 0);
  // A second lease of the mini-batch that has run longest, and longer than `slow`, on another node;
  // nullopt when there is none, or a failure of both leases could be a try too many.
  std::optional<LeaseName> GrantSecond(uint32_t node, const Incarnation& incarnation, Duration slow,
                                       uint32_t max_try, Instant now, uint64_t request = 0);

  // A new fence for a mini-batch that `node` holds from an earlier epoch or incarnation; nullopt
  // when it is settled, not planned, leased to another node, or would keep a suspect company.
  std::optional<Fence> Adopt(uint32_t node, const Incarnation& incarnation, BatchId id,
                             bool started, Instant now, uint64_t request = 0);

  // The live lease of that name, if it is this incarnation's.
  const Lease* Find(const Incarnation& incarnation, const LeaseName& name) const;
  // False when the lease is not live or not this incarnation's.
  bool Renew(const Incarnation& incarnation, const HeldLease& held, Instant now);
  bool Holds(const Incarnation& incarnation, BatchId id, const Fence& fence) const;
  // To anybody.
  bool Leased(BatchId id) const { return leases_.contains(id); }

  // Ends a lease; the mini-batch is pending again when it was the last one and it is not settled.
  void Release(const LeaseName& name);
  // Another lease of the same mini-batch is live.
  bool LiveBeside(const LeaseName& name) const;
  // Ends every lease of a mini-batch.
  void ReleaseAll(BatchId id);
  // More is held against it than before.
  void Reconsider(BatchId id);

  struct Held {
    BatchId id = 0;
    Lease lease;
  };
  // Ends every lease whose deadline is at or before `now`, and returns them.
  std::vector<Held> Expire(Instant now);
  // The node's connection broke: its leases end at `now + grace` unless renewed.
  void Shorten(uint32_t node, Instant now, Duration grace);
  // Gives every lease `gap` more: the coordinator itself was not running.
  void Extend(Duration gap);

  std::vector<Held> HeldBy(uint32_t node) const;
  size_t HeldCount(uint32_t node) const;
  // How many mini-batches a node may hold at most while it holds this one. Anything but kAnyCompany
  // makes it a suspect: it is leased when nothing else is.
  uint32_t Company(BatchId id) const {
    return state_.batch(id).losses >= kSuspectLosses ? 1 : state_.company(id);
  }

  // Mini-batches with a lease, and how many of them are pieces.
  size_t live() const { return leases_.size(); }
  size_t live_pieces() const { return live_pieces_; }
  // Durable, not settled, not leased.
  uint64_t pending() const;
  // The earliest deadline; nullopt without leases.
  std::optional<Instant> NextDeadline() const;

 private:
  using Leases = std::map<BatchId, Lease>;

  bool Open(BatchId id) const;
  bool Free(BatchId id) const {
    return Open(id) && !leases_.contains(id) && !withheld_.contains(id) && !held_back_.contains(id);
  }
  bool Known(BatchId id) const { return IsPiece(id) ? state_.known(id) : id < allowed_; }
  bool Suspected(BatchId id) const { return Company(id) != JobState::kAnyCompany; }
  // Of the suspects that the node holds, the least company that one may have.
  uint32_t CompanyOn(uint32_t node) const;
  bool HoldsSuspect(uint32_t node) const { return CompanyOn(node) != JobState::kAnyCompany; }
  void Return(BatchId id);
  std::optional<BatchId> NextFree();
  std::optional<BatchId> NextSuspect(uint32_t node);
  Lease& Add(Leases& to, BatchId id, uint32_t node, const Incarnation& incarnation, Instant now,
             uint64_t request);
  void Remove(Leases& from, Leases::iterator lease);
  template <typename Visit>
  void ForEach(Visit visit);

  const JobState& state_;
  uint32_t epoch_;
  Duration ttl_;
  uint64_t last_fence_ = 0;
  BatchId allowed_ = 0;
  BatchId next_ = 0;  // every free id below is in returned_ or suspects_; every free suspect there
  std::priority_queue<BatchId, std::vector<BatchId>, std::greater<>> returned_;
  Suspects suspects_;
  std::set<BatchId> withheld_;
  std::map<BatchId, uint32_t> held_back_;  // how often
  Leases leases_;
  Leases seconds_;  // second leases, of ids that are in leases_ too
  size_t live_pieces_ = 0;
  std::map<uint32_t, size_t> held_;                          // live leases by node
  std::map<uint32_t, std::multiset<uint32_t>> suspects_on_;  // leased: company, by node
};

}  // namespace parallelrun
