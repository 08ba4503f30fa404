#include "store/throttling.h"

#include <spdlog/fmt/fmt.h>

#include "base/escape.h"

namespace parallelrun::store {
namespace {

constexpr Duration kLasts = seconds(10);
// A request that was refused is sent again after 15 s at most (store::RetryLimits).
constexpr Duration kIsOver = seconds(30);
constexpr size_t kMostUrl = 150;

}  // namespace

void Throttling::Saw(const std::string& url, const AnswerCounts& until_now, WallTime now) {
  Seen& seen = stores_[url];
  if (until_now.throttled == seen.throttled) return;
  if (seen.throttled == 0 || now - seen.last > kIsOver) seen.first = now;
  seen.throttled = until_now.throttled;
  seen.last = now;
}

std::string Throttling::Text(WallTime now) const {
  for (const auto& [url, seen] : stores_) {
    if (seen.throttled == 0 || now - seen.last > kIsOver) continue;
    if (seen.last - seen.first < kLasts) continue;
    return fmt::format("throttled by the store {} since {}", Printable(url, kMostUrl),
                       Rfc3339(seen.first));
  }
  return "";
}

}  // namespace parallelrun::store
