// A coordinator's copy of its chain, as a file of its own disk: what publishes reads single rows in
// another order than they came in, and a request for each would take hours. It holds what was added
// to it from the first link on, as far as there is room, and is worth nothing to anybody else.
// `Add` belongs to one thread at a time, `Read` to any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"

namespace parallelrun::ledger {

class ChainCopy {
 public:
  // `path`: of the file, absolute, emptied where it is there; "": no copy is kept. It grows to
  // `most` bytes: a pod's own disk is small, and where rows are many, links are large, and few to
  // be read.
  ChainCopy(Files& files, const std::string& path, uint64_t most);

  // What lies at `offset` of the chain: behind what was added before.
  void Add(uint64_t offset, std::string_view bytes);
  // Nothing: it has not all of that.
  std::optional<std::string> Read(uint64_t offset, size_t size) const;

 private:
  std::unique_ptr<File> file_;
  std::optional<uint64_t> begin_;  // where in the chain it begins
  const uint64_t most_;
  bool full_ = false;
  std::atomic<uint64_t> size_{0};
};

}  // namespace parallelrun::ledger
