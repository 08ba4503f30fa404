// What nodes report and the coordinator does not take (docs/coordinator-api.md, "What is refused"):
// counted, and kept in few words until they are logged. Bounded, whatever nodes send. Pure; not
// thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "job/ids.h"
#include "job/node_messages.h"

namespace parallelrun::coordinator {

enum class RefusalReason : uint8_t {
  kStale,
  kJobOver,
  kSettled,
  kLeased,
  kExpired,
  kUnknown,
  kContent,
  kIncomplete,
};
inline constexpr size_t kRefusals = 8;
// As the label of the metric says it.
const char* RefusalName(RefusalReason why);

struct RefusedReport {
  enum class Kind : uint8_t { kLease, kOffer, kResult, kFailedAttempt };
  job::LeaseName name;
  Kind kind = Kind::kLease;
  RefusalReason why = RefusalReason::kStale;
};
RefusedReport::Kind KindOf(const job::Finished& done);

class Refusals {
 public:
  // What is told by name between two calls of Take, of a node and a reason.
  static constexpr size_t kTold = 3;

  // `speculation`: of two attempts of a mini-batch one is refused in the order of things.
  explicit Refusals(bool speculation) : speculation_(speculation) {}

  // `pod`: number of the incarnation's pod; 0: unknown.
  void Note(uint32_t node, uint64_t pod, const job::Incarnation& incarnation,
            const RefusedReport& report);

  struct Line {
    bool warns = false;  // somebody did what should not happen
    std::string text;
  };
  // What is to be logged since the last call: a line for each node and reason.
  std::vector<Line> Take();

  uint64_t count(RefusalReason why) const { return counts_[static_cast<size_t>(why)]; }

 private:
  struct Untold {
    uint64_t pod = 0;
    uint64_t count = 0;
    std::string first;  // kTold of them
  };

  const bool speculation_;
  std::array<uint64_t, kRefusals> counts_{};
  std::map<std::pair<uint32_t, RefusalReason>, Untold> untold_;  // by node
};

}  // namespace parallelrun::coordinator
