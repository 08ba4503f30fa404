// How many requests are under way at each store of a job, and what waits until its store allows one
// more. Each has a figure of its own: one that throttles would else hold up what lies in another.
// Pure: time is passed in; not thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "agent/objects/cache.h"
#include "agent/objects/connections.h"
#include "base/time.h"
#include "store/store.h"

namespace parallelrun::agent {

class StoreSlots {
 public:
  static constexpr size_t kMostLooks = 64;  // that wait for one store

  // Whether the store allows one more request, which is under way then until GiveBack.
  bool Take(const std::string& store);
  bool AnyFree(const std::string& store) const;
  // What the store has answered until now; before GiveBack of what was under way meanwhile.
  void Saw(const std::string& store, const store::AnswerCounts& until_now, Instant now);
  void GiveBack(const std::string& store);

  // What is to be done once its store allows it. False: so many looks wait that others had better
  // stay where they are.
  bool Park(Cache::Step step);
  // One that waited and has its slot now: the first of some store.
  std::optional<Cache::Step> TakeParked();

  // Requests in all, as many as threads are of use: those of one store at least, and of all stores
  // together no more than any may have.
  size_t allowed() const;

 private:
  struct One {
    Connections connections;
    size_t under_way = 0;
    std::deque<Cache::Step> parked;
    size_t looks = 0;  // of these
  };
  std::map<std::string, One> stores_;  // by name
};

}  // namespace parallelrun::agent
