// Waits: what of stores this node waits for, as the coordinator hears of it: the side inputs,
// before the first process starts, and a store that keeps it waiting. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/told.h"

namespace parallelrun::agent {

class Waits {
 public:
  // What of the side inputs is fetched, for people, and the bytes of them that are here; "": all
  // are. Nothing where that is no news.
  std::optional<Event> SideInputs(const std::string& what, uint64_t bytes);
  // Which store keeps it waiting, and how; "": none does. Likewise.
  std::optional<Event> Store(const std::string& what);

  bool side_inputs_there() const { return side_inputs_.empty(); }
  // For a coordinator that has not heard it.
  std::vector<Event> All() const;

 private:
  Event OfSideInputs() const;
  Event OfStore() const;

  std::string side_inputs_;
  uint64_t bytes_ = 0;
  std::string store_;
};

}  // namespace parallelrun::agent
