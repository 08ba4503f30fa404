// The cache of an informer, without its threads: digests by key, an index, and who has seen what.
// Thread-safe; a scope (one namespace, or the cluster) is written by one thread.
#pragma once

#include <spdlog/spdlog.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "kube/reflector.h"
#include "kube/resource.h"

namespace parallelrun::kube {

template <typename Digest>
struct InformerEvent {
  std::string key;                       // "namespace/name"
  std::shared_ptr<const Digest> before;  // null: added
  std::shared_ptr<const Digest> after;   // null: deleted; `before` may be older than the deletion
};

template <typename Digest>
class InformerStore {
 public:
  using Pointer = std::shared_ptr<const Digest>;
  using DigestFunction = std::function<std::optional<Digest>(const nlohmann::json&)>;
  using IndexFunction = std::function<std::string(const Digest&)>;
  using Handler = std::function<void(const InformerEvent<Digest>&)>;

  InformerStore(DigestFunction digest, IndexFunction index, Handler handler)
      : digest_(std::move(digest)), index_(std::move(index)), handler_(std::move(handler)) {}

  // A writer for the objects of `name_space` ("": all). Before any thread reads.
  std::unique_ptr<ReflectorSink> MakeScope(const std::string& name_space) {
    auto scope = std::make_unique<ScopeSink>(*this);
    const std::lock_guard lock(mutex_);
    seen_[name_space];
    scope->seen = &seen_[name_space];
    return scope;
  }

  bool HasSynced() const {
    const std::lock_guard lock(mutex_);
    for (const auto& [name_space, seen] : seen_) {
      if (!seen.synced) return false;
    }
    return true;
  }

  bool HasSeen(const std::string& name_space, uint64_t resource_version) const {
    const std::lock_guard lock(mutex_);
    auto found = seen_.find(name_space);
    if (found == seen_.end()) found = seen_.find("");
    return found != seen_.end() && found->second.version >= resource_version;
  }

  Pointer Get(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(key);
    return found == objects_.end() ? nullptr : found->second.digest;
  }

  std::vector<Pointer> Indexed(const std::string& value) const {
    std::vector<Pointer> result;
    const std::lock_guard lock(mutex_);
    const auto found = by_index_.find(value);
    if (found == by_index_.end()) return result;
    for (const std::string& key : found->second) result.push_back(objects_.at(key).digest);
    return result;
  }

  std::vector<std::pair<std::string, Pointer>> All() const {
    std::vector<std::pair<std::string, Pointer>> result;
    const std::lock_guard lock(mutex_);
    result.reserve(objects_.size());
    for (const auto& [key, object] : objects_) result.emplace_back(key, object.digest);
    return result;
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return objects_.size();
  }

 private:
  struct Held {
    Pointer digest;
    uint64_t version = 0;
    const void* scope = nullptr;  // whose list it belongs to
  };
  struct Seen {
    bool synced = false;
    uint64_t version = 0;
  };
  using Staged = std::unordered_map<std::string, Held>;

  struct ScopeSink final : ReflectorSink {
    explicit ScopeSink(InformerStore& s) : store(s) {}
    void BeginStage() override { staged.clear(); }
    void Stage(const nlohmann::json& object) override {
      std::string key = NameOf(object).Key();
      if (auto held = store.Digested(object, key, this)) {
        staged.insert_or_assign(std::move(key), std::move(*held));
      } else {
        staged.erase(key);
      }
    }
    void Unstage(const nlohmann::json& object) override { staged.erase(NameOf(object).Key()); }
    void CommitStage(const std::string& resource_version) override {
      store.Replace(std::exchange(staged, {}), this);
      Reached(resource_version);
      const std::lock_guard lock(store.mutex_);
      seen->synced = true;
    }
    void Upsert(const nlohmann::json& object) override {
      const std::string key = NameOf(object).Key();
      store.Set(key, store.Digested(object, key, this));
    }
    void Remove(const nlohmann::json& object) override {
      store.Set(NameOf(object).Key(), std::nullopt);
    }
    void Reached(const std::string& resource_version) override {
      const uint64_t version = ParseResourceVersion(resource_version).value_or(0);
      const std::lock_guard lock(store.mutex_);
      if (version > seen->version) seen->version = version;
    }
    InformerStore& store;
    Seen* seen = nullptr;
    Staged staged;
  };

  std::optional<Held> Digested(const nlohmann::json& object, const std::string& key,
                               const void* scope) const {
    try {
      if (std::optional<Digest> digest = digest_(object)) {
        return Held{std::make_shared<const Digest>(std::move(*digest)),
                    ResourceVersionOf(object).value_or(0), scope};
      }
    } catch (const std::exception& e) {
      spdlog::warn("informer: {} is not of the form that was expected and is left out: {}",
                   Printable(key, kShown), Printable(e.what(), kShown));
    }
    return std::nullopt;
  }

  void Replace(Staged staged, const void* scope) {
    std::vector<std::string> gone;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [key, held] : objects_) {
        if (held.scope == scope && !staged.contains(key)) gone.push_back(key);
      }
    }
    for (const std::string& key : gone) Set(key, std::nullopt);
    for (auto& [key, held] : staged) Set(key, std::move(held));
  }

  // Stores or removes, then tells the handler; an object that is held at this version already
  // (after a new list) is no news.
  void Set(const std::string& key, std::optional<Held> next) {
    InformerEvent<Digest> event{key, nullptr, next ? next->digest : nullptr};
    {
      const std::lock_guard lock(mutex_);
      const auto found = objects_.find(key);
      if (found != objects_.end()) {
        event.before = found->second.digest;
        if (next && next->version != 0 && next->version == found->second.version) return;
        Unindex(key, *event.before);
      }
      if (next) {
        if (index_) by_index_[index_(*next->digest)].insert(key);
        objects_[key] = std::move(*next);
      } else if (found != objects_.end()) {
        objects_.erase(found);
      }
    }
    if (event.before || event.after) Tell(event);
  }

  // A handler that throws is told of the next event all the same: one odd object must not end the
  // news of all others.
  void Tell(const InformerEvent<Digest>& event) const {
    if (!handler_) return;
    try {
      handler_(event);
    } catch (const std::exception& e) {
      spdlog::error("informer: what is new about {} could not be handed on: {}",
                    Printable(event.key, kShown), Printable(e.what(), kShown));
    }
  }

  void Unindex(const std::string& key, const Digest& digest) {
    if (!index_) return;
    const auto found = by_index_.find(index_(digest));
    if (found == by_index_.end()) return;
    found->second.erase(key);
    if (found->second.empty()) by_index_.erase(found);
  }

  static constexpr size_t kShown = 300;
  const DigestFunction digest_;
  const IndexFunction index_;
  const Handler handler_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<std::string, Held> objects_;
  std::unordered_map<std::string, std::set<std::string>> by_index_;
  std::unordered_map<std::string, Seen> seen_;
};

}  // namespace parallelrun::kube
