#include "operator/builders/placement.h"

#include "base/json.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr char kHost[] = "kubernetes.io/hostname";
constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";

// A list of the pod's affinity, beside the user's own terms.
json& AffinityList(json& pod, const char* kind, const char* when) {
  json* at = &pod["spec"];
  for (const char* key : {"affinity", kind}) {
    at = &(*at)[key];
    if (!at->is_object()) *at = json::object();
  }
  json& list = (*at)[when];
  if (!list.is_array()) list = json::array();
  return list;
}

void KeepOnOneHost(const JobIdentity& job, json& pod) {
  // A term that the pod's own labels match lets the first pod of the job go anywhere.
  const json term = {{"topologyKey", kHost},
                     {"labelSelector", {{"matchLabels", {{"parallelrun.dev/job-uid", job.uid}}}}}};
  AffinityList(pod, "podAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
      .push_back(term);
}

// Whether the pod says which hosts it likes better than others. An empty list says: all alike.
bool HasAWish(const json& pod_spec) {
  const json& affinity = lenient::At(pod_spec, "affinity");
  return !lenient::At(pod_spec, "topologySpreadConstraints").is_null() ||
         !lenient::At(affinity, "podAffinity").is_null() ||
         !lenient::At(affinity, "podAntiAffinity").is_null() ||
         !lenient::At(lenient::At(affinity, "nodeAffinity"), kPreferred).is_null();
}

// Not by affinity between pods: a coordinator's would bind the nodes too, which then would rather
// share a host than be on the coordinator's.
void SpreadOverHosts(const JobIdentity& job, json& pod) {
  pod["spec"]["topologySpreadConstraints"] = json::array(
      {{{"topologyKey", kHost},
        {"maxSkew", 1},
        {"whenUnsatisfiable", "ScheduleAnyway"},
        {"labelSelector",
         {{"matchLabels",
           {{"parallelrun.dev/job-uid", job.uid}, {"parallelrun.dev/role", "node"}}}}}}});
}

}  // namespace

void AvoidHosts(const std::map<std::string, int32_t>& failed_hosts, json& pod) {
  constexpr int32_t kFailuresToAvoid = 2;
  json fields = json::array();
  for (const auto& [host, failures] : failed_hosts) {
    if (failures < kFailuresToAvoid) continue;
    fields.push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", {host}}});
  }
  if (fields.empty()) return;
  AffinityList(pod, "nodeAffinity", kPreferred)
      .push_back({{"weight", 100}, {"preference", {{"matchFields", std::move(fields)}}}});
}

void SayDisruption(const api::JobSpec& spec, json& pod) {
  json& annotations = pod["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = json::object();
  const auto say = [&annotations](const char* key, const char* value) {
    if (!annotations.contains(key)) annotations[key] = value;
  };
  const bool avoid = spec.disruption != api::Disruption::kAllow;
  say("cluster-autoscaler.kubernetes.io/safe-to-evict", avoid ? "false" : "true");
  if (avoid) say("karpenter.sh/do-not-disrupt", "true");
}

void Place(const BuildContext& context, json& pod) {
  if (context.one_host) return KeepOnOneHost(context.identity, pod);
  // The scheduler weighs wishes of different kinds alike, whatever their own weights: with this one
  // beside it, a host that failed would win over one that has a node.
  if (!HasAWish(pod["spec"])) SpreadOverHosts(context.identity, pod);
}

}  // namespace parallelrun::operators
