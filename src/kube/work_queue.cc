#include "kube/work_queue.h"

#include <algorithm>
#include <utility>

namespace parallelrun::kube {

void WorkQueueCore::Add(const std::string& key, Instant now, bool urgent) {
  if (shut_down_) return;
  if (!dirty_.emplace(key, now).second) return;
  if (!processing_.contains(key)) (urgent ? urgent_ : queue_).push_back(key);
}

void WorkQueueCore::AddAt(const std::string& key, Instant when, Instant now) {
  if (shut_down_) return;
  if (when <= now) return Add(key, now);
  const auto [found, added] = waiting_.emplace(key, when);
  if (!added) {
    if (found->second <= when) return;
    by_time_.erase({found->second, key});
    found->second = when;
  }
  by_time_.emplace(when, key);
}

Instant WorkQueueCore::AddRateLimited(const std::string& key, Instant now) {
  constexpr int kDoublings = 18;  // 5 ms x 2^18 is above the cap
  const int failures = failures_[key]++;
  const Duration wait =
      failures >= kDoublings ? kLastRetry : std::min(kLastRetry, kFirstRetry * (1 << failures));
  AddAt(key, now + wait, now);
  return now + wait;
}

int WorkQueueCore::Failures(const std::string& key) const {
  const auto found = failures_.find(key);
  return found == failures_.end() ? 0 : found->second;
}

void WorkQueueCore::Due(Instant now) {
  while (!by_time_.empty() && by_time_.begin()->first <= now) {
    const std::string key = by_time_.begin()->second;
    by_time_.erase(by_time_.begin());
    waiting_.erase(key);
    Add(key, now);
  }
}

std::optional<WorkQueueCore::Taken> WorkQueueCore::Take(Instant now) {
  constexpr uint64_t kTurnOfOthers = 4;
  Due(now);
  if (depth() == 0) return std::nullopt;
  const bool others = urgent_.empty() || (++taken_ % kTurnOfOthers == 0 && !queue_.empty());
  std::deque<std::string>& from = others ? queue_ : urgent_;
  Taken taken{std::move(from.front()), {}};
  from.pop_front();
  const auto dirty = dirty_.find(taken.key);
  taken.waited = now - dirty->second;
  dirty_.erase(dirty);
  processing_.insert(taken.key);
  return taken;
}

void WorkQueueCore::Done(const std::string& key, Instant now) {
  if (processing_.erase(key) == 0) return;
  const auto dirty = dirty_.find(key);
  if (dirty == dirty_.end()) return;
  dirty->second = now;
  queue_.push_back(key);
}

void WorkQueueCore::ShutDown() {
  shut_down_ = true;
  waiting_.clear();
  by_time_.clear();
}

std::optional<Instant> WorkQueueCore::NextDue() const {
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first;
}

WorkQueue::WorkQueue(std::shared_ptr<const Clock> clock, WorkQueueHooks hooks)
    : clock_(std::move(clock)), hooks_(std::move(hooks)) {}

// With the lock held.
void WorkQueue::Depth() {
  if (hooks_.depth) hooks_.depth(core_.depth());
}

// With the lock held. One who waits is enough: it wakes the next when it leaves with a key.
void WorkQueue::OneMore() {
  Depth();
  ready_.notify_one();
}

void WorkQueue::Add(const std::string& key, bool urgent) {
  const std::lock_guard lock(mutex_);
  if (hooks_.added) hooks_.added();
  core_.Add(key, clock_->Now(), urgent);
  OneMore();
}

void WorkQueue::AddAfter(const std::string& key, Duration after) {
  const std::lock_guard lock(mutex_);
  const Instant now = clock_->Now();
  core_.AddAt(key, now + after, now);
  OneMore();
}

void WorkQueue::AddRateLimited(const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (hooks_.retried) hooks_.retried();
  core_.AddRateLimited(key, clock_->Now());
  OneMore();
}

void WorkQueue::Forget(const std::string& key) {
  const std::lock_guard lock(mutex_);
  core_.Forget(key);
}

int WorkQueue::Failures(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  return core_.Failures(key);
}

std::optional<std::string> WorkQueue::Get() {
  std::unique_lock lock(mutex_);
  while (true) {
    const Instant now = clock_->Now();
    if (std::optional<WorkQueueCore::Taken> taken = core_.Take(now)) {
      begun_[taken->key] = now;
      if (hooks_.waited) hooks_.waited(taken->waited);
      OneMore();
      return std::move(taken->key);
    }
    // A key that is worked on may come back.
    if (core_.shut_down() && core_.processing() == 0) return std::nullopt;
    if (const std::optional<Instant> due = core_.NextDue()) {
      ready_.wait_for(lock, *due - now);
    } else {
      ready_.wait(lock);
    }
  }
}

void WorkQueue::Done(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const Instant now = clock_->Now();
  if (const auto begun = begun_.find(key); begun != begun_.end()) {
    if (hooks_.worked) hooks_.worked(now - begun->second);
    begun_.erase(begun);
  }
  core_.Done(key, now);
  Depth();
  if (core_.depth() > 0) ready_.notify_one();
  if (core_.shut_down() && core_.processing() == 0) {
    ready_.notify_all();
    idle_.notify_all();
  }
}

void WorkQueue::ShutDown() {
  const std::lock_guard lock(mutex_);
  core_.ShutDown();
  ready_.notify_all();
}

bool WorkQueue::Drain(Duration limit) {
  std::unique_lock lock(mutex_);
  core_.ShutDown();
  ready_.notify_all();
  return idle_.wait_for(lock, limit,
                        [this] { return core_.depth() == 0 && core_.processing() == 0; });
}

size_t WorkQueue::depth() const {
  const std::lock_guard lock(mutex_);
  return core_.depth();
}

size_t WorkQueue::processing() const {
  const std::lock_guard lock(mutex_);
  return core_.processing();
}

Duration WorkQueue::LongestWork() const {
  const std::lock_guard lock(mutex_);
  const Instant now = clock_->Now();
  Duration longest{};
  for (const auto& [key, begun] : begun_) longest = std::max(longest, now - begun);
  return longest;
}

}  // namespace parallelrun::kube
