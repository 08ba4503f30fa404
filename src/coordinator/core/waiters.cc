#include "coordinator/core/waiters.h"

namespace parallelrun::coordinator {

void Waiters::Add(Waiter waiter) {
  const uint64_t exchange = waiter.exchange;
  nodes_[waiter.node].insert(exchange);
  woken_.insert(exchange);
  waiters_.emplace(exchange, std::move(waiter));
}

std::optional<uint32_t> Waiters::Gone(uint64_t exchange) {
  const auto found = waiters_.find(exchange);
  if (found == waiters_.end()) return std::nullopt;
  const uint32_t node = found->second.node;
  Answered(found->second);
  return node;
}

void Waiters::Release(uint32_t node, Instant now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  for (const uint64_t exchange : found->second) {
    Waiter& waiter = waiters_.at(exchange);
    Forget(waiter);
    waiter.want = 0;
    waiter.park_until = now;
    woken_.insert(exchange);
  }
}

void Waiters::Durable(uint64_t position) {
  durable_ = position;
  while (!positions_.empty() && positions_.begin()->first <= position) {
    woken_.insert(positions_.begin()->second);
    positions_.erase(positions_.begin());
  }
}

void Waiters::ParksOver(Instant now) {
  while (!parks_.empty() && parks_.begin()->first <= now) {
    woken_.insert(parks_.begin()->second);
    parks_.erase(parks_.begin());
  }
}

void Waiters::WakeAll() {
  for (const auto& [exchange, waiter] : waiters_) woken_.insert(exchange);
}

Waiter* Waiters::Next(uint64_t exchange, bool work) {
  auto next = woken_.upper_bound(exchange);
  bool found = next != woken_.end();
  if (work && hungry_woken_) {
    const auto hungry = hungry_.upper_bound(exchange);
    if (hungry != hungry_.end() && (!found || *hungry < *next)) {
      next = hungry;
      found = true;
    }
  }
  return found ? &waiters_.at(*next) : nullptr;
}

void Waiters::Answered(const Waiter& waiter) {
  Forget(waiter);
  woken_.erase(waiter.exchange);
  const auto node = nodes_.find(waiter.node);
  node->second.erase(waiter.exchange);
  if (node->second.empty()) nodes_.erase(node);
  waiters_.erase(waiter.exchange);
}

void Waiters::Wait(const Waiter& waiter, bool durable) {
  woken_.erase(waiter.exchange);
  if (!durable) {
    positions_.insert({waiter.position, waiter.exchange});
    return;
  }
  parks_.insert({waiter.park_until, waiter.exchange});
  if (waiter.want > 0) hungry_.insert(waiter.exchange);
}

std::map<uint64_t, Waiter> Waiters::TakeAll() {
  const uint64_t last = last_;
  std::map<uint64_t, Waiter> all = std::move(waiters_);
  *this = Waiters();
  last_ = last;
  return all;
}

// What it waits for.
void Waiters::Forget(const Waiter& waiter) {
  positions_.erase({waiter.position, waiter.exchange});
  parks_.erase({waiter.park_until, waiter.exchange});
  hungry_.erase(waiter.exchange);
}

}  // namespace parallelrun::coordinator
