// The live leases, found by mini-batch, by node, by deadline and by how long they have been at
// work. Knows no rule: Availability decides who gets one. Pure; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/linked_list.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/job_state.h"
#include "job/node_messages.h"

namespace parallelrun::job {

struct Lease {
  uint32_t node = 0;
  Incarnation incarnation;
  Fence fence;
  WorkInstant deadline;  // at this instant the lease is gone
  bool started = false;
  WorkInstant started_at = {};     // when that was heard
  uint64_t request = 0;            // number of the node's request that it was granted in answer to
  uint32_t company = kAnyCompany;  // that it may have
};

struct Held {
  BatchId id = 0;
  Lease lease;
};

class Leases {
 public:
  struct Live {
    BatchId id = 0;
    Lease lease;
    bool shortened = false;  // which list of deadlines it is in
    bool may_have_second = false;
    Neighbours<Live> of_node;
    Neighbours<Live> by_deadline;
  };

  // At most two of a mini-batch. Stays where it is until it is removed.
  Live& Add(BatchId id, const Lease& lease);
  void Remove(Live& live);

  bool Has(BatchId id) const { return of_.contains(id); }
  // Those of a mini-batch, the earlier one first; nullptr where there is none.
  std::array<Live*, 2> Of(BatchId id) const;
  Live* Find(const LeaseName& name) const;

  void Renew(Live& live, WorkInstant deadline);
  // Those of the node end at `deadline`, unless they do earlier or are renewed.
  void Shorten(uint32_t node, WorkInstant deadline);
  // With the earliest deadline; nullptr without any.
  Live* Earliest() const;

  // In the order of the ids.
  std::vector<Held> OfNode(uint32_t node) const;
  size_t CountOf(uint32_t node) const;
  // The least company that one of the node may have.
  uint32_t CompanyOn(uint32_t node) const;

  // Whether it may be given to a second node too. It has started, then.
  void AllowSecond(Live& live, bool allowed);
  // Of those that may have a second lease and that `node` does not hold, that which started first.
  Live* LongestElsewhere(uint32_t node) const;

  // Of those that have started, that which did first; nullptr without any. Looks at each.
  const Live* Slowest() const;

  // When the first of those that may have a second lease started.
  std::optional<WorkInstant> LongestWithoutSecond() const;

  // Mini-batches with a lease, and how many of them are pieces.
  size_t batches() const { return of_.size(); }
  size_t pieces() const { return pieces_; }

  // What is wrong with the indexes, "": nothing. Counts all of them: for tests.
  std::string Check() const;

 private:
  using Deadlines = LinkedList<Live, &Live::by_deadline>;
  struct OfBatch {
    std::unique_ptr<Live> first;
    std::unique_ptr<Live> second;
  };
  struct OfNodeIndex {
    LinkedList<Live, &Live::of_node> leases;
    size_t count = 0;
    std::multiset<uint32_t> companies;  // of suspects
  };

  Deadlines& DeadlinesOf(const Live& live) { return live.shortened ? shortened_ : whole_; }
  void SortIn(Live& live);

  std::unordered_map<BatchId, OfBatch> of_;
  std::map<uint32_t, OfNodeIndex> nodes_;
  // Time goes on, and all leases last as long: what comes is last, so that each list is in order
  // by construction. One list for both would not be.
  Deadlines whole_;
  Deadlines shortened_;
  std::set<std::pair<WorkInstant, BatchId>> without_second_;
  size_t pieces_ = 0;
};

}  // namespace parallelrun::job
