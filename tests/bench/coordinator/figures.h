// Internal to this bench: what agents measure. Each thread of agents has its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace parallelrun::bench {

struct Figures {
  std::vector<uint32_t> exchanges;  // microseconds from the request to its whole answer
  uint64_t parked = 0;              // exchanges that the coordinator may hold: not among these
  uint64_t settled = 0;             // mini-batches
  uint64_t refused = 0;             // leases that somebody took away
  uint64_t expired = 0;             // leases that ended while their agent was there: adopted again
  uint64_t offered = 0;             // after a restart
  uint64_t adopted = 0;             // of these
  uint64_t failed = 0;              // calls that broke, or were answered with an error

  void Add(const Figures& other) {
    exchanges.insert(exchanges.end(), other.exchanges.begin(), other.exchanges.end());
    parked += other.parked;
    settled += other.settled;
    refused += other.refused;
    expired += other.expired;
    offered += other.offered;
    adopted += other.adopted;
    failed += other.failed;
  }
  // In milliseconds; sorts.
  double Percentile(double share) {
    if (exchanges.empty()) return 0;
    const auto at = std::min(exchanges.size() - 1,
                             static_cast<size_t>(share * static_cast<double>(exchanges.size())));
    const auto nth = exchanges.begin() + static_cast<std::ptrdiff_t>(at);
    std::nth_element(exchanges.begin(), nth, exchanges.end());
    return *nth / 1000.0;
  }
};

}  // namespace parallelrun::bench
