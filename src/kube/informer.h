// A cache of one kind of object that follows the API server, holding a digest of each: a plain
// struct of what the owner needs, so that whole objects are never kept.
//
//   struct PodDigest { std::string job; std::string phase; };
//   InformerOptions<PodDigest> options;
//   options.resource = {"", "v1", "pods"};
//   options.digest = [](const nlohmann::json& pod) -> std::optional<PodDigest> {...};
//   options.index = [](const PodDigest& pod) { return pod.job; };
//   options.handler = [&](const InformerEvent<PodDigest>& event) { queue.Add(...); };
//   Informer<PodDigest> pods(client, options);   // begins at once, on threads of its own
//
// Thread-safe. Handlers run on the informer's threads, one event of a namespace at a time, after
// the cache shows it; they must be quick (a queue's Add). One that throws is logged, and its event
// lost. Resync is not needed and not there.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "kube/informer_store.h"
#include "kube/reflector.h"

namespace parallelrun::kube {

template <typename Digest>
struct InformerOptions {
  Resource resource;
  std::vector<std::string> namespaces;  // one watch each; empty: the whole cluster
  std::string label_selector;
  std::string field_selector;
  bool metadata_only = false;
  bool watch_list = true;
  // Nothing: the object is left out. May throw, as nlohmann::json does: logged and left out.
  std::function<std::optional<Digest>(const nlohmann::json&)> digest;
  std::function<std::string(const Digest&)> index;            // empty: no index
  std::function<void(const InformerEvent<Digest>&)> handler;  // empty: none
  std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>();
};

template <typename Digest>
class Informer {
 public:
  using Pointer = std::shared_ptr<const Digest>;

  // `client` must outlive it.
  Informer(Client& client, const InformerOptions<Digest>& options)
      : store_(options.digest, options.index, options.handler) {
    std::vector<std::string> namespaces = options.namespaces;
    if (namespaces.empty()) namespaces.emplace_back();
    for (const std::string& name_space : namespaces) {
      auto scope = std::make_unique<Scope>();
      scope->source = MakeListWatcher(client, {options.resource, name_space, options.label_selector,
                                               options.field_selector, options.metadata_only});
      scope->sink = store_.MakeScope(name_space);
      ReflectorOptions reflector;
      reflector.name = options.resource.Name() + (name_space.empty() ? "" : " of " + name_space);
      reflector.watch_list = options.watch_list;
      reflector.clock = options.clock;
      scope->reflector =
          std::make_unique<Reflector>(*scope->source, *scope->sink, std::move(reflector));
      scopes_.push_back(std::move(scope));
    }
    for (auto& scope : scopes_) {
      scope->thread = Thread("informer", [&reflector = *scope->reflector] { reflector.Run(); });
    }
  }
  ~Informer() { Stop(); }

  // Ends the watches and waits for the threads: at once when the client is cancelled, else within
  // one call's time-out. The cache stays readable. For one thread.
  void Stop() {
    for (auto& scope : scopes_) scope->reflector->Stop();
    for (auto& scope : scopes_) {
      if (scope->thread.joinable()) scope->thread.join();
    }
  }

  // Every namespace was listed once and its handlers have run.
  bool HasSynced() const { return store_.HasSynced(); }
  // Everything up to `resource_version` in that namespace is in the cache: read-your-writes.
  bool HasSeen(const std::string& name_space, uint64_t resource_version) const {
    return store_.HasSeen(name_space, resource_version);
  }
  Pointer Get(const std::string& key) const { return store_.Get(key); }
  // What the index function puts under `value`, sorted by key.
  std::vector<Pointer> Indexed(const std::string& value) const { return store_.Indexed(value); }
  std::vector<std::pair<std::string, Pointer>> All() const { return store_.All(); }
  size_t size() const { return store_.size(); }
  // Of all namespaces together; one of the last errors.
  ReflectorStats stats() const {
    ReflectorStats sum;
    for (const auto& scope : scopes_) {
      const ReflectorStats one = scope->reflector->stats();
      sum.lists += one.lists;
      sum.watches += one.watches;
      sum.events += one.events;
      sum.errors += one.errors;
      if (!one.last_error.empty()) sum.last_error = one.last_error;
    }
    return sum;
  }

 private:
  struct Scope {
    std::unique_ptr<ListWatcher> source;
    std::unique_ptr<ReflectorSink> sink;
    std::unique_ptr<Reflector> reflector;
    Thread thread;
  };

  InformerStore<Digest> store_;
  std::vector<std::unique_ptr<Scope>> scopes_;
};

}  // namespace parallelrun::kube
