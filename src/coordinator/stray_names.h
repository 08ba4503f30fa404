// What scripts have left in the working folders of their nodes, as these tell when they leave: it
// goes with them. On one thread; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace parallelrun::coordinator {

class StrayNames {
 public:
  // How many files a node has found, and the name of one.
  void Count(uint64_t files) { count_ += files < kMost ? files : kMost; }
  void Add(std::string_view name);

  // For people, with where such files belong; "": there are none. `linked`: ./outputs is a link to
  // the output folder.
  std::string Words(bool linked = true) const;

 private:
  static constexpr uint64_t kMost = 1'000'000;  // that a node can have found
  static constexpr size_t kMostNamed = 3;

  uint64_t count_ = 0;
  std::set<std::string> first_;  // in the order of names, printable
};

}  // namespace parallelrun::coordinator
