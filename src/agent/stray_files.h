// What a script leaves in its working folder, which is a copy of the code and goes with the node:
// nobody would learn that it was there. Blocking I/O; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/files.h"

namespace parallelrun::agent {

class StrayFiles {
 public:
  static constexpr size_t kMostNamed = 3;

  // Of the folder as it is now, with nothing of the script's. `files` must outlive this.
  StrayFiles(const Files& files, std::string folder);

  struct Found {
    size_t count = 0;
    std::vector<std::string> first;  // relative to the folder, in the order of names; printable
  };
  // What is new now: but for `logs`, the link `outputs` and what Python puts there. Nothing where
  // it is not known what was there at first, and no more than what can be looked at.
  Found Look() const;

 private:
  const Files& files_;
  const std::string folder_;
  std::vector<size_t> known_;  // hashes of names, in their order
  bool all_ = true;            // there are no others
};

}  // namespace parallelrun::agent
