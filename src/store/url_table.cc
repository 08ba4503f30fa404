#include "store/url_table.h"

#include <algorithm>
#include <utility>

namespace parallelrun::store {

void UrlTable::Put(const std::string& location, Entry entry, Instant now) {
  const std::lock_guard lock(mutex_);
  if (entries_.size() >= prune_at_) {
    std::erase_if(entries_, [now](const auto& one) { return one.second.ends <= now; });
    prune_at_ = std::max(prune_at_, 2 * entries_.size());
  }
  entries_.insert_or_assign(location, std::move(entry));
}

std::optional<UrlTable::Entry> UrlTable::Get(const std::string& location, Instant now) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(location);
  if (found == entries_.end() || found->second.ends <= now) return std::nullopt;
  return found->second;
}

void UrlTable::End(const std::string& location, const std::string& url) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(location);
  if (found != entries_.end() && found->second.url == url) entries_.erase(found);
}

}  // namespace parallelrun::store
