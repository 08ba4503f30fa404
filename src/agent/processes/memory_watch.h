// MemoryWatch says when this node's container is about to be killed for memory, and which worker
// process should go before that. Reads small files of /proc and of the cgroup. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/processes/memory_group.h"

namespace parallelrun::agent {

// How much room is left free below `limit`: enough for what grows between two looks.
uint64_t MemoryReserve(uint64_t limit);

class MemoryWatch {
 public:
  explicit MemoryWatch(const MemoryGroup& group) : group_(group), limit_(group.Limit()) {}

  bool on() const { return limit_.has_value(); }

  // While what is in use and cannot be reclaimed leaves less than the reserve: the words for the
  // one that has to go, "the container's limit is 4 GiB, 3.9 GiB are in use".
  std::optional<std::string> Short() const;

  // The member of `leaders` whose process group has the most memory resident, of those below this
  // process; nullopt when none has any.
  static std::optional<pid_t> Largest(const std::vector<pid_t>& leaders);

 private:
  const MemoryGroup& group_;
  const std::optional<uint64_t> limit_;  // it does not change while a container runs
};

}  // namespace parallelrun::agent
