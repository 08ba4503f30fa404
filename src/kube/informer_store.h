// The cache of an informer, without its threads: what reflectors find becomes digests, and news of
// them for a handler. Thread-safe; a scope (one namespace, or the cluster) is written by one
// thread.
#pragma once

#include <spdlog/spdlog.h>

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "kube/indexed_objects.h"
#include "kube/reflector.h"
#include "kube/resource.h"
#include "kube/scopes_seen.h"

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
  using Objects = IndexedObjects<Digest>;
  using Pointer = typename Objects::Pointer;
  using DigestFunction = std::function<std::optional<Digest>(const nlohmann::json&)>;
  using IndexFunction = typename Objects::IndexFunction;
  using Handler = std::function<void(const InformerEvent<Digest>&)>;

  InformerStore(DigestFunction digest, IndexFunction index, Handler handler)
      : digest_(std::move(digest)), handler_(std::move(handler)), objects_(std::move(index)) {}

  // A writer for the objects of `name_space` ("": all). Before any thread reads.
  std::unique_ptr<ReflectorSink> MakeScope(const std::string& name_space) {
    const std::lock_guard lock(mutex_);
    seen_.Add(name_space);
    return std::make_unique<ScopeSink>(*this, name_space);
  }

  bool HasSynced() const {
    const std::lock_guard lock(mutex_);
    return seen_.AllSynced();
  }

  bool HasSeen(const std::string& name_space, uint64_t resource_version) const {
    const std::lock_guard lock(mutex_);
    return seen_.HasSeen(name_space, resource_version);
  }

  Pointer Get(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const Held* const held = objects_.Find(key);
    return held == nullptr ? nullptr : held->digest;
  }

  std::vector<Pointer> Indexed(const std::string& value) const {
    const std::lock_guard lock(mutex_);
    return objects_.Indexed(value);
  }

  std::vector<std::pair<std::string, Pointer>> All() const {
    std::vector<std::pair<std::string, Pointer>> result;
    const std::lock_guard lock(mutex_);
    result.reserve(objects_.all().size());
    for (const auto& [key, object] : objects_.all()) result.emplace_back(key, object.digest);
    return result;
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return objects_.all().size();
  }

 private:
  using Held = typename Objects::Held;
  using Staged = std::unordered_map<std::string, Held>;

  struct ScopeSink final : ReflectorSink {
    ScopeSink(InformerStore& s, std::string of) : store(s), name_space(std::move(of)) {}
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
      store.seen_.Synced(name_space);
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
      store.seen_.Reached(name_space, version);
    }
    InformerStore& store;
    const std::string name_space;
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
      for (const auto& [key, held] : objects_.all()) {
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
      if (const Held* const held = objects_.Find(key)) {
        event.before = held->digest;
        if (next && next->version != 0 && next->version == held->version) return;
      }
      if (next) {
        objects_.Put(key, std::move(*next));
      } else {
        objects_.Remove(key);
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

  const DigestFunction digest_;
  const Handler handler_;
  mutable std::mutex mutex_;  // guards what follows
  Objects objects_;
  ScopesSeen seen_;
};

}  // namespace parallelrun::kube
