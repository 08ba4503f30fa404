// Where processes are in Python, as their agents tell it when they are asked, for messages.
// Bounded. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace parallelrun::coordinator {

class Places {
 public:
  // Of a process, or of the whole node (ProcessEvent::kWholeNode); told at least once.
  void Add(uint32_t node, uint32_t process, std::string_view where);
  void Clear() { where_.clear(); }
  bool empty() const { return where_.empty(); }
  // Not for the script alone.
  bool NodesWait() const;
  // "node 0, process000 and 2 more: run score.py:30; 4 more elsewhere": `most` places, those where
  // most of them are first.
  std::string Text(size_t most) const;

 private:
  std::map<std::pair<uint32_t, uint32_t>, std::string> where_;  // by node and process
};

}  // namespace parallelrun::coordinator
