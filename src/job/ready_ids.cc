#include "job/ready_ids.h"

#include <bit>
#include <cstddef>

namespace parallelrun::job {
namespace {

constexpr uint32_t kShift = 6;  // 64 bits a word
constexpr uint32_t kLow = (1U << kShift) - 1;

uint64_t Bit(uint64_t id) { return uint64_t{1} << (id & kLow); }

}  // namespace

bool ReadyIds::Add(uint32_t id) {
  if (Contains(id)) return false;
  ++size_;
  uint64_t at = id;
  for (size_t level = 0;; ++level) {
    std::vector<uint64_t>& words = levels_[level];
    const uint64_t word = at >> kShift;
    if (word >= words.size()) {
      // What was the highest level gets one above it, in which its first word is known.
      if (level + 1 == levels_.size()) levels_.push_back({words[0] != 0 ? uint64_t{1} : 0});
      levels_[level].resize(word + 1);
    }
    uint64_t& bits = levels_[level][word];
    const bool known = bits != 0;
    bits |= Bit(at);
    if (known || level + 1 == levels_.size()) return true;
    at = word;
  }
}

bool ReadyIds::Remove(uint32_t id) {
  if (!Contains(id)) return false;
  --size_;
  uint64_t at = id;
  for (std::vector<uint64_t>& words : levels_) {
    uint64_t& bits = words[at >> kShift];
    bits &= ~Bit(at);
    if (bits != 0) break;
    at >>= kShift;
  }
  return true;
}

bool ReadyIds::Contains(uint32_t id) const {
  const size_t word = id >> kShift;
  return word < levels_[0].size() && (levels_[0][word] & Bit(id)) != 0;
}

std::optional<uint32_t> ReadyIds::First() const {
  if (size_ == 0) return std::nullopt;
  uint64_t at = 0;
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    at = (at << kShift) + static_cast<uint64_t>(std::countr_zero((*level)[at]));
  }
  return static_cast<uint32_t>(at);
}

}  // namespace parallelrun::job
