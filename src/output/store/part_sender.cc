#include "output/store/part_sender.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace parallelrun::output {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kSensiblePart = 16 * kMiB;
constexpr uint64_t kInFlight = 64 * kMiB;
constexpr uint64_t kMostAtOnce = 4;
constexpr uint64_t kSpareParts = 100;  // a format adds to the rows what nobody has counted

}  // namespace

PartPlan PlanParts(uint64_t total, const store::WriteStore::Parts& parts) {
  const uint64_t most = std::max<uint64_t>(parts.most, kSpareParts + 1) - kSpareParts;
  const uint64_t needed = (total + most - 1) / most;
  const uint64_t whole = (needed + kMiB - 1) / kMiB * kMiB;
  PartPlan plan;
  plan.bytes = std::max({kSensiblePart, parts.smallest, whole});
  plan.at_once = static_cast<size_t>(std::clamp<uint64_t>(kInFlight / plan.bytes, 1, kMostAtOnce));
  return plan;
}

PartSender::PartSender(store::Upload& upload, const PartPlan& plan, uint32_t most_parts)
    : upload_(upload), plan_(plan), most_parts_(most_parts) {
  for (size_t i = 0; i < plan.at_once; ++i) threads_.emplace_back("send part", [this] { Send(); });
}

PartSender::~PartSender() { End(); }

Status PartSender::Add(std::string_view bytes) {
  while (!bytes.empty()) {
    gathered_.reserve(plan_.bytes);  // not twice as much, as it would grow
    const size_t fits = std::min<size_t>(plan_.bytes - gathered_.size(), bytes.size());
    gathered_.append(bytes.substr(0, fits));
    bytes.remove_prefix(fits);
    if (gathered_.size() < plan_.bytes) continue;
    if (Status handed = Hand(); !handed.ok()) return handed;
  }
  return {};
}

Status PartSender::Finish() {
  if (!gathered_.empty() || number_ == 0) {
    if (Status handed = Hand(); !handed.ok()) return handed;
  }
  End();
  return failed_;
}

Status PartSender::Hand() {
  if (number_ == most_parts_) {
    return Error{Code::kInvalid,
                 fmt::format("the output is larger than {} parts of {} bytes, which "
                             "is what its store takes",
                             most_parts_, plan_.bytes)};
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !failed_.ok() || (!handed_ && sending_ < plan_.at_once); });
  if (!failed_.ok()) return failed_;
  handed_ = Part{++number_, std::exchange(gathered_, {})};
  changed_.notify_all();
  return {};
}

void PartSender::Send() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return handed_ || ended_; });
    if (!handed_) return;
    Part part = *std::exchange(handed_, std::nullopt);
    ++sending_;
    lock.unlock();
    Status sent = upload_.Send(part.number, std::move(part.bytes));
    lock.lock();
    --sending_;
    if (failed_.ok() && !sent.ok()) failed_ = std::move(sent);
    changed_.notify_all();
  }
}

void PartSender::End() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (!failed_.ok()) handed_.reset();
  }
  changed_.notify_all();
  for (Thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

}  // namespace parallelrun::output
