// IndexedObjects: the digests that an informer holds, by key, and under which value of its index
// each of them stands. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace parallelrun::kube {

template <typename Digest>
class IndexedObjects {
 public:
  using Pointer = std::shared_ptr<const Digest>;
  using IndexFunction = std::function<std::string(const Digest&)>;
  struct Held {
    Pointer digest;
    uint64_t version = 0;         // 0: unknown
    const void* scope = nullptr;  // whose list it belongs to
  };

  // Without an `index` nothing stands under a value.
  explicit IndexedObjects(IndexFunction index) : index_(std::move(index)) {}

  // In place of the one with that key, if there is any.
  void Put(const std::string& key, Held held) {
    const std::string value = index_ ? index_(*held.digest) : std::string();
    Remove(key);
    if (index_) by_index_[value].insert(key);
    objects_[key] = std::move(held);
  }
  // What is not there is removed already.
  void Remove(const std::string& key) {
    const auto found = objects_.find(key);
    if (found == objects_.end()) return;
    Unindex(key, *found->second.digest);
    objects_.erase(found);
  }

  // nullptr: it is not there.
  const Held* Find(const std::string& key) const {
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : &found->second;
  }
  // What the index puts under `value`, sorted by key.
  std::vector<Pointer> Indexed(const std::string& value) const {
    std::vector<Pointer> result;
    const auto found = by_index_.find(value);
    if (found == by_index_.end()) return result;
    for (const std::string& key : found->second) result.push_back(objects_.at(key).digest);
    return result;
  }
  const std::unordered_map<std::string, Held>& all() const { return objects_; }

 private:
  void Unindex(const std::string& key, const Digest& digest) {
    if (!index_) return;
    const auto found = by_index_.find(index_(digest));
    if (found == by_index_.end()) return;
    found->second.erase(key);
    if (found->second.empty()) by_index_.erase(found);
  }

  const IndexFunction index_;
  std::unordered_map<std::string, Held> objects_;
  std::unordered_map<std::string, std::set<std::string>> by_index_;
};

}  // namespace parallelrun::kube
