#include "coordinator/page/figures.h"

#include <algorithm>

namespace parallelrun::coordinator {
namespace {

uint64_t KeyOf(uint32_t node, uint32_t process) { return uint64_t{node} << 32 | process; }

bool Longer(const Figures::Attempt& a, const Figures::Attempt& b) {
  return a.run_ns != b.run_ns ? a.run_ns > b.run_ns : a.id < b.id;
}

void AddTo(Figures::Sums& sums, const Figures::Attempt& a, Duration begin, Duration end) {
  sums.begun = sums.attempts == 0 ? begin : std::min(sums.begun, begin);
  sums.ended = std::max(sums.ended, end);
  ++sums.attempts;
  if (!a.succeeded) {
    ++sums.failed;
    sums.failed_run_ns += a.run_ns;
  } else {
    sums.items += a.items;
  }
  sums.run_ns += a.run_ns;
  sums.elapsed_ns += a.elapsed_ns;
  sums.cpu_ns += a.cpu_ns;
}

}  // namespace

uint64_t Figures::Sums::span_ns() const {
  return static_cast<uint64_t>(std::max<int64_t>((ended - begun).count(), 0)) * 1000;
}

void Figures::Add(const Attempt& a) {
  if (a.elapsed_ns == 0) return;  // nobody reported it: its node died
  const int64_t begin_us = a.finished_us - static_cast<int64_t>(a.elapsed_ns / 1000);
  if (begun_us_ == 0) begun_us_ = begin_us;
  if (epoch_begins_ && begin_us > last_us_) {
    const Duration at(last_us_ - begun_us_ - cut_us_);
    if (cuts_.size() < kMostCuts) cuts_.push_back({at, Duration(begin_us - last_us_)});
    cut_us_ += begin_us - last_us_;
  }
  epoch_begins_ = false;
  last_us_ = std::max(last_us_, a.finished_us);

  const Duration begin(std::max<int64_t>(begin_us - begun_us_ - cut_us_, 0));
  const Duration end(std::max<int64_t>(a.finished_us - begun_us_ - cut_us_, 0));
  AddTo(total_, a, begin, end);
  length_ = std::max(length_, end);
  series_.Add(end, {a.succeeded ? 1U : 0U, a.succeeded ? 0U : 1U, a.succeeded ? a.items : 0U,
                    a.run_ns, a.run_ns});
  NoteSlow(a);
  const uint64_t key = KeyOf(a.node, a.process);
  const auto found = processes_.find(key);
  if (found != processes_.end()) {
    AddTo(found->second, a, begin, end);
  } else if (processes_.size() < kMostProcesses) {
    AddTo(processes_[key], a, begin, end);
  }
}

void Figures::Reach(int64_t wall_us) {
  if (begun_us_ == 0) return;
  const Duration at(std::max<int64_t>(wall_us - begun_us_ - cut_us_, 0));
  series_.Add(at, {});
  length_ = std::max(length_, at);
}

void Figures::NoteSlow(const Attempt& attempt) {
  if (slow_.size() == kMostSlow) {
    if (!Longer(attempt, slow_.front())) return;
    std::pop_heap(slow_.begin(), slow_.end(), Longer);
    slow_.pop_back();
  }
  slow_.push_back(attempt);
  std::push_heap(slow_.begin(), slow_.end(), Longer);
}

uint64_t Figures::process_ns() const {
  uint64_t sum = 0;
  for (const auto& [key, sums] : processes_) sum += sums.span_ns();
  return sum;
}

std::vector<std::pair<Figures::ProcessName, Figures::Sums>> Figures::processes() const {
  std::vector<std::pair<ProcessName, Sums>> all;
  all.reserve(processes_.size());
  for (const auto& [key, sums] : processes_) {
    all.push_back({{static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key)}, sums});
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return KeyOf(a.first.node, a.first.process) < KeyOf(b.first.node, b.first.process);
  });
  return all;
}

std::vector<Figures::Attempt> Figures::slowest() const {
  std::vector<Attempt> sorted = slow_;
  std::sort(sorted.begin(), sorted.end(), Longer);
  return sorted;
}

}  // namespace parallelrun::coordinator
