#include "operator/facts.h"

#include <nlohmann/json.hpp>

#include "operator/resources.h"

namespace parallelrun::operators {
namespace {

constexpr int kMostEvents = 50;

const kube::Resource& ResourceOf(FactKind kind) {
  switch (kind) {
    case FactKind::kConfigMap: return kConfigMaps;
    case FactKind::kSecret: return kSecrets;
    case FactKind::kClaim: return kClaims;
    case FactKind::kService: return kServices;
    case FactKind::kNetworkPolicy: return kNetworkPolicies;
    case FactKind::kDisruptionBudget: return kDisruptionBudgets;
    case FactKind::kPodEvents:
    case FactKind::kClaimEvents: return kCoreEvents;
  }
  return kConfigMaps;
}

Fact Unread(const kube::ApiError& error, WallTime now) {
  Fact fact;
  fact.read = now;
  fact.state = error.NotFound() ? Fact::State::kAbsent : Fact::State::kUnreadable;
  if (error.NotFound()) return fact;
  fact.error = error.message;
  fact.passing = error.Transient();
  return fact;
}

}  // namespace

Fact ReadFact(kube::Client& client, const std::string& name_space, const FactKey& key,
              const Clock& clock) {
  const kube::Resource& resource = ResourceOf(key.kind);
  if (key.kind == FactKind::kPodEvents || key.kind == FactKind::kClaimEvents) {
    kube::ListOptions options;
    options.field_selector = "involvedObject.uid=" + key.name;
    options.limit = kMostEvents;
    const auto page = client.List(resource, name_space, options);
    if (!page.ok()) return Unread(page.error(), clock.WallNow());
    Fact fact;
    fact.read = clock.WallNow();
    for (const nlohmann::json& event : page->items) fact.events.push_back(DigestEvent(event));
    return fact;
  }
  const bool metadata_only = key.kind == FactKind::kSecret;
  const auto object = client.Get(resource, {name_space, key.name}, {}, metadata_only);
  if (!object.ok()) return Unread(object.error(), clock.WallNow());
  return DigestFact(*object, clock.WallNow());
}

}  // namespace parallelrun::operators
