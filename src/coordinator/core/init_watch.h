// InitWatch says while init() runs for how long, on how many nodes, and where it stands on the one
// that is at it longest. That one is asked for it, as before a standstill, and ever more rarely:
// the signal may wake what init() waits in. Nothing is decided by it. Times are working time. Pure;
// not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "coordinator/core/nodes.h"
#include "coordinator/core/places.h"

namespace parallelrun::coordinator {

class InitWatch {
 public:
  // Each tick. True when the node that is at it longest is to be asked from now on.
  bool Tick(const Nodes::InInit& in_init, WorkInstant worked);
  // Whether this node is to be asked where its processes are.
  bool Asks(uint32_t node) const { return asks_ && node == node_; }
  void Asked(uint32_t node);
  // An answer to the node was lost, which may have asked it.
  void NotHeard(uint32_t node);
  // What it says, of each process; told at least once.
  void Where(uint32_t node, uint32_t process, std::string_view where);

  // "init() has been running for 1m30s on 2 nodes; node 0, process000: init score.py:3
  // (score.py:3)"; "" while that is no news. What it says changes rarely: it is written to a
  // status.
  std::string Text(const Nodes::InInit& in_init, WorkInstant worked) const;

 private:
  static constexpr Duration kFirstAsk = seconds(30);

  uint32_t node_ = 0;    // that is watched, if any is
  WorkInstant since_{};  // it is at init()
  Duration next_ask_ = kFirstAsk;
  bool asks_ = false;
  bool asked_ = false;  // and it has not answered
  bool fresh_ = false;  // what it says from now on takes the place of what it said before
  Places places_;
};

}  // namespace parallelrun::coordinator
