// What the operator's own process uses, by the names that Prometheus' clients give it. Any thread.
#pragma once

#include <string>

namespace parallelrun::operators {

struct ProcessUsage {
  double cpu_seconds = 0;     // of all its threads, user and system
  double resident_bytes = 0;  // 0: it cannot be read
};
ProcessUsage OwnUsage();

// Prometheus text.
std::string ProcessText(const ProcessUsage& usage);

}  // namespace parallelrun::operators
