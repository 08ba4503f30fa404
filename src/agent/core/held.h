// Held: each mini-batch of this node, from the lease until what came of it is settled. A mini-batch
// waits, perhaps for its objects first, is with a process, or is finished and to be reported; it
// may be offered (granted under an earlier incarnation, and not this one's yet) or refused (the
// coordinator knows it no more, and a process still has it). Pure; not thread-safe. Views that it
// fills in are valid until the next method that changes something is called.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/core/agent_types.h"
#include "agent/core/calls.h"
#include "agent/core/outcome.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/node_messages.h"

namespace parallelrun::agent {

struct Batch {
  enum class State : uint8_t { kFetches, kWaits, kGiven, kFinished };
  job::LeaseName name;
  uint64_t digest = 0;
  std::string work;
  State state = State::kWaits;
  bool offered = false;
  bool refused = false;
  bool of_objects = false;  // they are wanted, and on this node once it waits
  bool begun = false;       // as a list of what is held said last
  bool wants_urls = false;  // one of its objects has none that counts
  Instant confirmed{};      // when the request was sent whose answer granted or renewed it last
  uint32_t bounces = 0;     // deaths of processes with it in front, which were not its fault
  uint32_t process = 0;     // that it was given to last
  std::string rows;         // so far; of a result, once it is finished
  uint64_t rows_heard = 0;  // of them the coordinator has, in parts
  Outcome outcome;
};

struct LeaseNameHash {
  size_t operator()(const job::LeaseName& name) const {
    return name.id * 0x9E3779B97F4A7C15U ^ (name.fence.number << 20) ^ name.fence.epoch;
  }
};

class Held {
 public:
  // Nothing if it is here already. It waits, or wants its objects first.
  std::optional<Key> Add(const job::Leased& leased, bool offered, Instant sent);
  const Batch& At(Key key) const { return batches_.at(key); }
  std::optional<Key> Find(const job::LeaseName& name) const;
  std::vector<job::LeaseName> Names() const;  // of all that are not refused

  // Its objects are here: `work` names files in their place. False if it wants none any more.
  bool Fetched(Key key, std::string work);
  bool Fetches(Key key) const;
  // It needs URLs of its objects, which lists of what is held say; or no more.
  void WantUrls(Key key, bool wants);
  // What wants objects since the last call, and what wanted some and needs them no more.
  std::vector<Key> TakeWanting() { return std::exchange(wanting_, {}); }
  std::vector<Key> TakeLetGo() { return std::exchange(let_go_, {}); }

  // What waits, in the order in which it is to be given.
  std::optional<Key> FirstWaiting();
  void Give(Key first, uint32_t process);
  // As if it had never been given; it is the first to be given again.
  void GiveAgain(Key key, uint32_t bounces);
  // All that waits, or fetches, but for the first `keep`.
  std::vector<Key> Waiting(size_t keep);

  // What the coordinator says of them. Unknown names are ignored.
  void Confirm(const std::vector<job::LeaseName>& names, Instant sent);
  void HeardParts(const std::vector<std::pair<Key, uint64_t>>& parts);
  // True if a process has it: it stays, refused, until the process lets go of it.
  bool Refuse(Key key);
  // The lease goes on under a new fence: which mini-batch that is, and whether it can be reported
  // from now on.
  struct Adoption {
    Key key = 0;
    bool report = false;
  };
  std::optional<Adoption> Adopt(const job::Adopted& adopted, Instant sent);
  // A new registration: all are offered, but for those whose lease may be over, and for what was
  // only to be handed back. Those are named.
  std::vector<job::LeaseName> OfferAll(Instant over_before);
  // It may be with another node by now.
  bool Over(Key key, Instant over_before) const;

  void AddRows(Key key, std::string_view rows);
  void DropRows(Key key);
  // False if there is nothing to report now.
  bool Finish(Key key, Outcome outcome);
  void Forget(Key key);

  // What an exchange says of them, within the bounds of one request.
  void List(const std::vector<std::pair<Key, bool>>& begun, Flight& flight,
            job::ExchangeRequest& request);
  void Offer(job::ExchangeRequest& request) const;
  // True if more is left than fits.
  bool Report(Flight& flight, job::ExchangeRequest& request);
  // An exchange reported these, and not all of them are settled. False if they are.
  bool ReportAgain(const std::vector<Key>& keys);

  size_t size() const { return batches_.size(); }
  bool any() const { return !batches_.empty(); }
  // Those that fetch or wait, or are with a process and not refused.
  size_t unfinished() const { return unfinished_; }
  bool offers() const { return offers_ > 0; }
  // So much is unsettled that nothing new should be begun.
  bool Full() const { return kept_bytes_ > kMaxKeptBytes; }

  static constexpr size_t kMaxKeptBytes = size_t{256} << 20;

 private:
  void LetGo(Key key, Batch& batch);
  bool ReportOne(Key key, const Batch& batch, size_t& budget, Flight& flight,
                 job::ExchangeRequest& request);

  std::unordered_map<Key, Batch> batches_;
  std::unordered_map<job::LeaseName, Key, LeaseNameHash> names_;
  std::deque<Key> waiting_;   // may hold keys that are gone or wait no more
  std::deque<Key> fetching_;  // likewise
  std::vector<Key> wanting_;  // likewise
  std::vector<Key> let_go_;
  std::deque<Key> unreported_;  // finished, not under way; may hold keys that are gone
  size_t unfinished_ = 0;
  size_t offers_ = 0;
  size_t kept_bytes_ = 0;  // of rows
  Key next_ = 1;
};

}  // namespace parallelrun::agent
