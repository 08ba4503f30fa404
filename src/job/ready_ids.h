// The mini-batches that anybody may get: a tree of words of 64 bits, in which each word says which
// of 64 below it hold something. The lowest is found in as many steps as the tree is high, however
// many there are. Pure; not thread-safe; an eighth of a byte for each id up to the highest.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace parallelrun::job {

class ReadyIds {
 public:
  // True when it was not there.
  bool Add(uint32_t id);
  // True when it was there.
  bool Remove(uint32_t id);
  bool Contains(uint32_t id) const;
  // The lowest.
  std::optional<uint32_t> First() const;
  uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

 private:
  // The lowest level first: a bit for each id. The highest has one word.
  std::vector<std::vector<uint64_t>> levels_{{0}};
  uint64_t size_ = 0;
};

}  // namespace parallelrun::job
