#include "agent/objects/store_trouble.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/escape.h"

namespace parallelrun::agent {
namespace {

constexpr Duration kLongAsked = seconds(5);
constexpr Duration kLongSilent = seconds(10);
constexpr size_t kMostAnswer = 300;  // bytes that are told
constexpr size_t kMostUrl = 150;

}  // namespace

void StoreTrouble::Begins(uint64_t step, const std::string& url, WallTime now) {
  at_work_[step] = {url, now};
}

void StoreTrouble::Ends(uint64_t step, std::string_view unreachable, WallTime now) {
  auto found = at_work_.extract(step);
  if (!found) return;
  Asked& asked = found.mapped();
  if (unreachable.empty()) {
    silent_.erase(asked.url);
    for (auto& [other, at_work] : at_work_) {
      if (at_work.url == asked.url) at_work.since = std::max(at_work.since, now);
    }
    return;
  }
  Silent& silent = silent_.try_emplace(asked.url, Silent{asked.since, {}}).first->second;
  silent.since = std::min(silent.since, asked.since);
  silent.answer = Printable(unreachable, kMostAnswer);
}

std::string StoreTrouble::TextOf(const std::pair<const std::string, Silent>& one) {
  const auto& [url, silent] = one;
  return fmt::format("the store {} has given nothing since {}; its last answer: {}",
                     Printable(url, kMostUrl), Rfc3339(silent.since), silent.answer);
}

std::string StoreTrouble::Lasting(WallTime now) const {
  for (const auto& one : silent_) {
    if (now - one.second.since >= kLongSilent) return TextOf(one);
  }
  return "";
}

std::string StoreTrouble::Text(WallTime now) const {
  if (!silent_.empty()) return TextOf(*silent_.begin());
  const Asked* longest = nullptr;
  for (const auto& [step, asked] : at_work_) {
    if (longest == nullptr || asked.since < longest->since) longest = &asked;
  }
  if (longest == nullptr || now - longest->since < kLongAsked) return "";
  return fmt::format("it waits for an object of the store {}, which has answered nothing since {}",
                     Printable(longest->url, kMostUrl), Rfc3339(longest->since));
}

}  // namespace parallelrun::agent
