// Which kind of object, and which object: the parts of an API server's paths. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace parallelrun::kube {

struct Resource {
  std::string group;    // "" is core/v1's group
  std::string version;  // "v1"
  std::string plural;   // "pods"
  bool namespaced = true;

  // "pods", "leases.coordination.k8s.io": for messages and metrics.
  std::string Name() const;
};

struct ObjectName {
  std::string name_space;  // "" for objects without one
  std::string name;

  // "namespace/name", or "name": the key of informers and queues.
  std::string Key() const;
};

// The reverse of Key().
ObjectName ParseKey(std::string_view key);

// metadata.namespace and metadata.name; empty where they are missing.
ObjectName NameOf(const nlohmann::json& object);

// "/api/v1/namespaces/default/pods/x/status"; every part percent-encoded. Without a name: the
// collection; without a namespace: that of the whole cluster.
std::string ResourcePath(const Resource& resource, const ObjectName& object,
                         std::string_view subresource = "");

// Etcd's revision. Kubernetes promises since 1.35 (KEP-5504) that these are integers that grow, and
// they always have been. Nothing for "" and for what is not a number.
std::optional<uint64_t> ParseResourceVersion(std::string_view text);
// metadata.resourceVersion of `object`.
std::optional<uint64_t> ResourceVersionOf(const nlohmann::json& object);

// metadata.ownerReferences' entry with controller: true; nullptr without one.
const nlohmann::json* ControllerOf(const nlohmann::json& object);

// The text at `path` ("/metadata/uid", a JSON pointer), or "" when there is no text.
std::string TextAt(const nlohmann::json& object, const char* path);

}  // namespace parallelrun::kube
