// Exchanges that have no answer yet, and which of them are to be looked at again: those that
// something woke, in the order in which they came. Why there is work, and what an answer says, is
// for its caller. Nobody is looked at for nothing: what waits for a sync, for the end of its park
// or for work is found by that. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/node_messages.h"

namespace parallelrun::coordinator {

struct Waiter {
  uint64_t exchange = 0;  // its name
  uint32_t node = 0;
  job::Incarnation incarnation;
  uint64_t number = 0;  // of the node's request
  uint32_t want = 0;
  Instant arrived;
  Instant park_until;
  uint64_t position = 0;  // the answer waits until the ledger is durable up to here
  bool news = false;      // there is something to say besides leases
  job::ExchangeReply reply;
  // The reply's views are valid during the call.
  std::function<void(const Result<job::ExchangeReply>&)> answer;
};

class Waiters {
 public:
  // Of an exchange that comes now.
  uint64_t Name() { return ++last_; }
  // It is woken.
  void Add(Waiter waiter);
  // The connection is gone. Gives the node; nullopt when it has its answer.
  std::optional<uint32_t> Gone(uint64_t exchange);

  // --- what wakes
  // Nothing is leased to those of the node any more, and their park is over: it is gone, or
  // another request stands for it.
  void Release(uint32_t node, Instant now);
  // Those that waited for a sync.
  void Durable(uint64_t position);
  void ParksOver(Instant now);
  // There may be work that was not there, for whoever is hungry: Next gives those too.
  void WakeHungry() { hungry_woken_ = true; }
  void WakeAll();

  // --- to answer: Next from 0 on, each followed by one of Answered and Wait, until there is none
  // The first that is woken after `exchange`; a hungry one only if `work` is there.
  Waiter* Next(uint64_t exchange, bool work);
  void Answered(const Waiter& waiter);
  // It waits on, for a sync or else for the end of its park, and for work if it wants some.
  void Wait(const Waiter& waiter, bool durable);
  // All that were woken had their turn.
  void AllSeen() { hungry_woken_ = false; }

  bool Has(uint32_t node) const { return nodes_.contains(node); }
  uint64_t durable() const { return durable_; }
  const std::map<uint64_t, Waiter>& all() const { return waiters_; }
  std::map<uint64_t, Waiter> TakeAll();

 private:
  void Forget(const Waiter& waiter);

  std::map<uint64_t, Waiter> waiters_;  // in the order in which they came
  uint64_t last_ = 0;
  std::set<uint64_t> woken_;
  bool hungry_woken_ = false;
  std::map<uint32_t, std::set<uint64_t>> nodes_;
  std::set<std::pair<uint64_t, uint64_t>> positions_;
  std::set<std::pair<Instant, uint64_t>> parks_;
  std::set<uint64_t> hungry_;
  uint64_t durable_ = 0;
};

}  // namespace parallelrun::coordinator
