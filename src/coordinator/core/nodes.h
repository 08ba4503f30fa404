// Who is there: the nodes of a job, the agent of each that is in force, and what it said of itself.
// What a node holds is Availability's business; times are working time. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "job/ids.h"
#include "job/leases.h"
#include "job/shutdowns.h"

namespace parallelrun::coordinator {

class Nodes {
 public:
  struct Node {
    uint32_t index = 0;
    job::Incarnation incarnation;
    std::string agent;
    uint64_t pod = 0;                    // number; 0: unknown
    uint64_t ended_pod = 0;              // the newest pod whose end was told
    std::deque<std::string> superseded;  // earlier agents, the last ones
    uint32_t processes = 1;
    uint32_t registrations = 0;  // in this epoch
    bool registered = false;
    bool gave_up = false;
    bool silent = false;  // neither left nor ended as far as is known, and says nothing
    bool ever_ready = false;
    bool starts = false;                   // no process of its agent is ready yet
    WorkInstant starts_since;              // with all that init() needs
    std::string no_room;                   // why it begins nothing; "": it does
    std::string ran_out;                   // what its processes had no space for
    std::string fetching;                  // of side inputs; "": it has them, or needs none
    uint64_t fetched = 0;                  // bytes of them
    std::string store_wait;                // which store keeps it waiting, and how; "": none does
    std::map<uint32_t, uint64_t> metrics;  // process to the number of its last metric
    WorkInstant seen;                      // last call; while one is open, it is there
    bool watched = false;                  // its silence is looked for
    std::vector<job::Held> expired;        // of its agent
    bool heard = false;                    // in this epoch: what it holds is known
    bool offers_open = false;              // some could not be compared, and are offered again
    uint64_t next_pod = 0;                 // of the agent that waits for this one's last work
    WorkInstant next_asked;                // first
  };

  // `expected`: how many are to come.
  explicit Nodes(uint32_t expected) : expected_(expected) {}

  // nullptr: it never registered in this epoch.
  Node* Find(uint32_t index);
  const Node* Find(uint32_t index) const;
  const std::map<uint32_t, Node>& all() const { return nodes_; }

  // What became of the agent that was in force when another one registers.
  enum class Before {
    kNone,     // there was none, or it is the same
    kDied,     // it and all that it held
    kMayLive,  // its pod was replaced, and may be at its work still, on its way out
  };
  Before BeforeIt(uint32_t index, const std::string& agent, uint64_t pod) const;
  // When the agent of that pod asked for the first time while the one before it is in force.
  WorkInstant FirstAsked(uint32_t index, uint64_t pod, WorkInstant worked);
  // The node is there, with a new incarnation of that epoch.
  Node& Register(uint32_t index, const std::string& agent, uint64_t pod, uint32_t processes,
                 uint32_t epoch, WorkInstant worked);
  // Another agent of that node has taken the place of this one, which may not register any more.
  bool Superseded(uint32_t index, const std::string& agent, uint64_t pod) const;
  bool InForce(uint32_t index, const job::Incarnation& incarnation) const;
  // It left, or its end was told: nobody waits for it.
  void Depart(Node& node);

  // --- what a node says of itself
  // One of its processes came through init().
  void Ready(Node& node);
  // One did not, and is tried anew.
  void InitFailed(Node& node);
  // Of init().
  void GiveUp(Node& node);
  // It begins nothing for want of room; "": it does.
  void NoRoom(Node& node, std::string why);
  // Its processes had no space for something; "": results come again.
  void RanOut(Node& node, std::string what);
  // It fetches side inputs before it starts a process, and has so many bytes, as digits; "": all.
  // True when it has more than before.
  bool Fetches(Node& node, std::string what, std::string_view bytes);
  // Offers of an earlier epoch, that were all compared with the plan, or not: some are made again.
  void Offered(Node& node, bool compared) { node.offers_open = !compared; }
  // What it holds; all of it, unless offers are open: it may say something else before it makes
  // them again.
  void Hear(Node& node);

  // --- silence
  // A call of that node was answered, or its connection broke.
  void CallEnded(uint32_t index);
  // Those that have said nothing for `limit`, and that have no call open, are gone until they
  // register again. Each tick; looks at those whose time may have come, not at all.
  void ForgetSilent(WorkInstant worked, Duration limit, const std::function<bool(uint32_t)>& calls);

  // --- how many are to be there
  void Expect(uint32_t count);
  uint32_t expected() const { return expected_; }
  // Only a changed number sends anybody away.
  bool Expected(uint32_t index) const { return !limited_ || index < expected_; }
  // Those whose node is neither there nor expected.
  std::vector<job::ProcessId> OfNobody(std::vector<job::ProcessId> processes) const;
  // Each of them has told in this epoch what it holds.
  bool AllHeard() const { return counts_.heard == expected_; }

  // --- counts
  size_t registered() const { return counts_.registered; }
  size_t processes() const { return counts_.processes; }  // of these
  // Of those expected, how many gave up on init().
  size_t gave_up() const { return counts_.gave_up; }
  bool any_ready() const { return counts_.ready > 0; }
  // Somebody could work, or should.
  bool AnyAtWork() const;
  // Nodes that are there, have what init() needs, and none of whose processes has come through it.
  struct InInit {
    size_t nodes = 0;
    uint32_t first = 0;  // that is at it longest
    WorkInstant since{};
  };
  InInit in_init() const;

  // --- for messages; "": none
  // Nodes that should be at work and say nothing, where nobody else works.
  std::string Silent() const;
  // Why one of them waits for its disk.
  std::string WaitsFor() const;
  // What of the side inputs the first of those fetches that do, and how many more do.
  std::string Fetching() const;
  // Which store keeps the first of those waiting that one does, and how many more wait.
  std::string StoreWaits() const;

 private:
  struct Counts {
    size_t registered = 0;
    size_t processes = 0;     // of these
    size_t without_room = 0;  // of these
    size_t ready = 0;
    size_t gave_up = 0;  // of those expected
    size_t heard = 0;    // likewise
  };

  // All that is counted changes between these two.
  void Uncount(const Node& node) { Count(node, -1); }
  void Count(const Node& node, int by = 1);
  void Watch(Node& node);
  bool IsInInit(const Node& node) const;
  std::string FirstThatSays(std::string Node::*what) const;

  std::map<uint32_t, Node> nodes_;
  uint32_t expected_;
  bool limited_ = false;
  uint32_t last_incarnation_ = 0;
  Counts counts_;
  std::set<uint32_t> silent_;
  std::set<std::pair<WorkInstant, uint32_t>> in_init_;  // by when it began
  // Registered nodes, each once, by when it was seen, or earlier: it may have been seen since.
  std::set<std::pair<WorkInstant, uint32_t>> watched_;
  WorkInstant ticked_;
};

}  // namespace parallelrun::coordinator
