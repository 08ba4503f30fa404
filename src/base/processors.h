// How many processors this process may use: those that it may run on, less where its control group
// (version 2) gives it less of their time, as the limit of a pod does. Reads files of the kernel;
// thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace parallelrun {

struct Processors {
  unsigned cores = 1;           // that it may run on
  std::optional<double> quota;  // as many cores' time; none: no limit
  // Threads that compute at once without taking the time of others of this process: 1 at least.
  size_t AtOnce() const;
};
Processors FindProcessors();

// The folder of this process's control group; empty: it cannot be told.
std::string ControlGroup();

// What a cpu.max says: "150000 100000" is 1.5. None: no limit, or it is no such text.
std::optional<double> CoreQuota(std::string_view cpu_max);

}  // namespace parallelrun
