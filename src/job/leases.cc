#include "job/leases.h"

#include <algorithm>
#include <cassert>

#include <spdlog/fmt/fmt.h>

namespace parallelrun::job {

Leases::Live& Leases::Add(BatchId id, const Lease& lease) {
  OfBatch& of = of_[id];
  assert(of.second == nullptr);
  if (of.first == nullptr && IsPiece(id)) ++pieces_;
  std::unique_ptr<Live>& place = of.first == nullptr ? of.first : of.second;
  place = std::make_unique<Live>();
  Live& live = *place;
  live.id = id;
  live.lease = lease;
  OfNodeIndex& node = nodes_[lease.node];
  node.leases.Append(live);
  ++node.count;
  if (lease.company != kAnyCompany) node.companies.insert(lease.company);
  SortIn(live);
  return live;
}

void Leases::Remove(Live& live) {
  AllowSecond(live, false);
  DeadlinesOf(live).Remove(live);
  const auto found = nodes_.find(live.lease.node);
  OfNodeIndex& node = found->second;
  node.leases.Remove(live);
  if (const uint32_t company = live.lease.company; company != kAnyCompany) {
    node.companies.erase(node.companies.find(company));
  }
  if (--node.count == 0) nodes_.erase(found);
  const auto of = of_.find(live.id);
  OfBatch& both = of->second;
  if (both.first.get() == &live) both.first = std::move(both.second);
  both.second.reset();
  if (both.first != nullptr) return;
  if (IsPiece(of->first)) --pieces_;
  of_.erase(of);
}

std::array<Leases::Live*, 2> Leases::Of(BatchId id) const {
  const auto found = of_.find(id);
  if (found == of_.end()) return {nullptr, nullptr};
  return {found->second.first.get(), found->second.second.get()};
}

Leases::Live* Leases::Find(const LeaseName& name) const {
  for (Live* live : Of(name.id)) {
    if (live != nullptr && live->lease.fence == name.fence) return live;
  }
  return nullptr;
}

void Leases::SortIn(Live& live) {
  Deadlines& list = DeadlinesOf(live);
  Live* before = list.last();
  while (before != nullptr && before->lease.deadline > live.lease.deadline) {
    before = Deadlines::Before(*before);
  }
  list.InsertAfter(before, live);
}

void Leases::Renew(Live& live, WorkInstant deadline) {
  DeadlinesOf(live).Remove(live);
  live.shortened = false;
  live.lease.deadline = deadline;
  SortIn(live);
}

void Leases::Shorten(uint32_t node, WorkInstant deadline) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  for (Live* live = found->second.leases.first(); live != nullptr;
       live = LinkedList<Live, &Live::of_node>::After(*live)) {
    if (live->lease.deadline <= deadline) continue;
    DeadlinesOf(*live).Remove(*live);
    live->shortened = true;
    live->lease.deadline = deadline;
    SortIn(*live);
  }
}

Leases::Live* Leases::Earliest() const {
  if (whole_.empty()) return shortened_.first();
  if (shortened_.empty()) return whole_.first();
  const bool shortened = shortened_.first()->lease.deadline < whole_.first()->lease.deadline;
  return (shortened ? shortened_ : whole_).first();
}

std::vector<Held> Leases::OfNode(uint32_t node) const {
  std::vector<Held> held;
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return held;
  held.reserve(found->second.count);
  for (const Live* live = found->second.leases.first(); live != nullptr;
       live = LinkedList<Live, &Live::of_node>::After(*live)) {
    held.push_back({live->id, live->lease});
  }
  std::sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.id < b.id; });
  return held;
}

size_t Leases::CountOf(uint32_t node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? 0 : found->second.count;
}

uint32_t Leases::CompanyOn(uint32_t node) const {
  const auto found = nodes_.find(node);
  if (found == nodes_.end() || found->second.companies.empty()) return kAnyCompany;
  return *found->second.companies.begin();
}

void Leases::AllowSecond(Live& live, bool allowed) {
  if (live.may_have_second == allowed) return;
  live.may_have_second = allowed;
  const std::pair started(live.lease.started_at, live.id);
  if (allowed) {
    without_second_.insert(started);
  } else {
    without_second_.erase(started);
  }
}

Leases::Live* Leases::LongestElsewhere(uint32_t node) const {
  for (const auto& [started, id] : without_second_) {
    Live* const live = Of(id)[0];
    if (live->lease.node != node) return live;
  }
  return nullptr;
}

const Leases::Live* Leases::Slowest() const {
  const Live* slowest = nullptr;
  for (const auto& [id, of] : of_) {
    for (const Live* const live : {of.first.get(), of.second.get()}) {
      if (live == nullptr || !live->lease.started) continue;
      const bool before = slowest == nullptr || live->lease.started_at < slowest->lease.started_at;
      if (before) slowest = live;
    }
  }
  return slowest;
}

std::optional<WorkInstant> Leases::LongestWithoutSecond() const {
  return without_second_.empty() ? std::nullopt : std::optional(without_second_.begin()->first);
}

std::string Leases::Check() const {
  size_t live = 0;
  size_t pieces = 0;
  size_t alone = 0;
  std::map<uint32_t, size_t> counts;
  for (const auto& [id, both] : of_) {
    pieces += IsPiece(id) ? 1 : 0;
    if (both.first == nullptr) return fmt::format("{} has no lease", MiniBatchText(id));
    for (const Live* one : {both.first.get(), both.second.get()}) {
      if (one == nullptr) continue;
      ++live;
      ++counts[one->lease.node];
      alone += one->may_have_second ? 1 : 0;
      if (one->may_have_second && !without_second_.contains({one->lease.started_at, id})) {
        return fmt::format("{} may have a second lease under another time", MiniBatchText(id));
      }
    }
    if (both.second != nullptr && both.first->lease.node == both.second->lease.node) {
      return fmt::format("{} has two leases on one node", MiniBatchText(id));
    }
  }
  if (pieces != pieces_) return "the number of leased pieces is wrong";
  if (alone != without_second_.size())
    return "something may have a second lease that has no first one";
  if (counts.size() != nodes_.size()) return "a node without a lease is listed";
  for (const auto& [index, node] : nodes_) {
    size_t listed = 0;
    for (const Live* one = node.leases.first(); one != nullptr; one = one->of_node.after) {
      listed += one->lease.node == index ? 1 : 0;
    }
    if (listed != counts[index] || node.count != listed) {
      return fmt::format("node {} has {} leases, {} in its list, {} counted", index, counts[index],
                         listed, node.count);
    }
  }
  for (const Deadlines* list : {&whole_, &shortened_}) {
    for (const Live* one = list->first(); one != nullptr; one = Deadlines::After(*one)) {
      const Live* const next = Deadlines::After(*one);
      if (next != nullptr && next->lease.deadline < one->lease.deadline) {
        return "deadlines are not in order";
      }
      --live;
    }
  }
  return live == 0 ? "" : "a lease is in no list of deadlines";
}

}  // namespace parallelrun::job
