// ScopesSeen: up to which resourceVersion an informer has seen each of its scopes (one namespace,
// or
// "": the cluster), and whether it was listed once: for who reads what it has written itself. Not
// thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace parallelrun::kube {

class ScopesSeen {
 public:
  void Add(const std::string& name_space) { seen_[name_space]; }
  // It was listed, and what was found is there.
  void Synced(const std::string& name_space) { seen_[name_space].synced = true; }
  void Reached(const std::string& name_space, uint64_t version) {
    uint64_t& reached = seen_[name_space].version;
    reached = std::max(reached, version);
  }

  bool AllSynced() const {
    return std::all_of(seen_.begin(), seen_.end(),
                       [](const auto& scope) { return scope.second.synced; });
  }
  // Of a namespace of its own, or of one of the cluster.
  bool HasSeen(const std::string& name_space, uint64_t version) const {
    auto found = seen_.find(name_space);
    if (found == seen_.end()) found = seen_.find("");
    return found != seen_.end() && found->second.version >= version;
  }

 private:
  struct Seen {
    bool synced = false;
    uint64_t version = 0;
  };
  std::unordered_map<std::string, Seen> seen_;
};

}  // namespace parallelrun::kube
