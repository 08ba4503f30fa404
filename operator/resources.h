// The kinds of objects that the operator works with.
#pragma once

#include <string_view>

#include "kube/resource.h"

namespace parallelrun::operators {

inline const kube::Resource kJobs{"parallelrun.dev", "v1alpha1", "parallelrunjobs"};
inline const kube::Resource kPods{"", "v1", "pods"};
inline const kube::Resource kServices{"", "v1", "services"};
inline const kube::Resource kSecrets{"", "v1", "secrets"};
inline const kube::Resource kConfigMaps{"", "v1", "configmaps"};
inline const kube::Resource kClaims{"", "v1", "persistentvolumeclaims"};
inline const kube::Resource kCoreEvents{"", "v1", "events"};
inline const kube::Resource kNetworkPolicies{"networking.k8s.io", "v1", "networkpolicies"};
inline const kube::Resource kDisruptionBudgets{"policy", "v1", "poddisruptionbudgets"};

// The kind whose plural an Action names; nullptr for one that the operator has no business with.
inline const kube::Resource* FindResource(std::string_view plural) {
  for (const kube::Resource* resource : {&kJobs, &kPods, &kServices, &kSecrets, &kConfigMaps,
                                         &kClaims, &kNetworkPolicies, &kDisruptionBudgets}) {
    if (resource->plural == plural) return resource;
  }
  return nullptr;
}

}  // namespace parallelrun::operators
