#include "operator/builders/objects.h"

#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>
#include <xxhash.h>

#include "api/object_names.h"
#include "base/json.h"
#include "operator/builders/pod_parts.h"
#include "operator/observed.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr int kMetricsPort = 9102;

std::string Base64(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

std::string Hex(uint64_t number) { return fmt::format("{:016x}", number); }

void Annotate(json& object) {
  const std::string hash = ContentHash(object);
  object["metadata"]["annotations"][kContentAnnotation] = hash;
}

json CoordinatorLabels(const JobIdentity& job) {
  return {{"parallelrun.dev/job-uid", job.uid}, {"parallelrun.dev/role", "coordinator"}};
}

}  // namespace

std::string CoordinatorPodName(const JobIdentity& job, int64_t incarnation) {
  return fmt::format("{}-coordinator-{}", BaseName(job), incarnation);
}
std::string NodePodName(const JobIdentity& job, int32_t index, int64_t incarnation) {
  return fmt::format("{}-node-{}-{}", BaseName(job), index, incarnation);
}
std::string AccessSecretName(const JobIdentity& job) {
  return api::AccessSecretName(job.name, job.uid);
}
std::string CodeSnapshotName(const JobIdentity& job) { return BaseName(job) + "-code"; }
std::string ServiceName(const JobIdentity& job) {
  return api::CoordinatorServiceName(job.name, job.uid);
}

json CommonLabels(const JobIdentity& job) {
  return {{"app.kubernetes.io/name", "parallelrun"},
          {"app.kubernetes.io/instance", job.name},
          {"app.kubernetes.io/part-of", "parallelrun"},
          {"app.kubernetes.io/managed-by", "parallelrun"},
          {"parallelrun.dev/job", job.name},
          {"parallelrun.dev/job-uid", job.uid}};
}

std::string NodeSelector(const JobIdentity& job) {
  return "parallelrun.dev/job-uid=" + job.uid + ",parallelrun.dev/role=node";
}

json ObjectMetadata(const JobIdentity& job, const std::string& name, const Labels& more_labels) {
  json labels = json(more_labels);
  if (!labels.is_object()) labels = json::object();
  labels.update(CommonLabels(job));
  return {{"name", name},
          {"namespace", job.name_space},
          {"labels", std::move(labels)},
          {"ownerReferences", json::array({{{"apiVersion", api::kApiVersion},
                                            {"kind", api::kJobKind},
                                            {"name", job.name},
                                            {"uid", job.uid},
                                            {"controller", true},
                                            {"blockOwnerDeletion", true}}})}};
}

json StateClaim(const BuildContext& context) {
  const JobIdentity& job = context.identity;
  const json& of = context.spec.state.claim_template;
  json metadata =
      ObjectMetadata(job, api::StateClaimName(job.name, job.uid), context.options.job_labels);
  const json& given = lenient::At(of, "metadata");
  for (const auto& [key, value] : lenient::At(given, "labels").items()) {
    metadata["labels"].emplace(key, value);  // ours win
  }
  if (const json& annotations = lenient::At(given, "annotations"); annotations.is_object()) {
    metadata["annotations"] = annotations;
  }
  json spec = lenient::At(of, "spec");
  if (!spec.contains("accessModes")) spec["accessModes"] = json::array({"ReadWriteOnce"});
  json claim = {{"apiVersion", "v1"},
                {"kind", "PersistentVolumeClaim"},
                {"metadata", std::move(metadata)},
                {"spec", std::move(spec)}};
  Annotate(claim);
  return claim;
}

json CoordinatorService(const BuildContext& context, int64_t incarnation) {
  json selector = CoordinatorLabels(context.identity);
  // One incarnation only: agents never alternate between two coordinators.
  selector["parallelrun.dev/incarnation"] = std::to_string(incarnation);
  json service = {{"apiVersion", "v1"},
                  {"kind", "Service"},
                  {"metadata", ObjectMetadata(context.identity, ServiceName(context.identity),
                                              context.options.job_labels)},
                  {"spec",
                   {{"type", "ClusterIP"},
                    {"selector", std::move(selector)},
                    // Else agents find nobody until a probe has been answered and told of, about a
                    // second after the coordinator could have had them.
                    {"publishNotReadyAddresses", true},
                    {"ports", json::array({{{"name", "https"},
                                            {"protocol", "TCP"},
                                            {"port", context.coordinator_port},
                                            {"targetPort", "https"}}})}}}};
  Annotate(service);
  return service;
}

json CoordinatorNetworkPolicy(const BuildContext& context) {
  const JobIdentity& job = context.identity;
  json from =
      json::array({{{"podSelector", {{"matchLabels", {{"parallelrun.dev/job-uid", job.uid}}}}}}});
  if (!context.options.operator_namespace.empty()) {
    from.push_back(
        {{"namespaceSelector",
          {{"matchLabels", {{"kubernetes.io/metadata.name", context.options.operator_namespace}}}}},
         {"podSelector",
          {{"matchLabels",
            {{"app.kubernetes.io/name", "parallelrun"},
             {"app.kubernetes.io/component", "operator"}}}}}});
  }
  const auto port = [](int number) {
    return json::array({{{"protocol", "TCP"}, {"port", number}}});
  };
  json ingress =
      json::array({{{"from", std::move(from)}, {"ports", port(context.coordinator_port)}}});
  // Kubelets, which probe this port too, need no rule.
  if (!context.options.metrics_namespaces.empty()) {
    const json named = {{"key", "kubernetes.io/metadata.name"},
                        {"operator", "In"},
                        {"values", context.options.metrics_namespaces}};
    ingress.push_back(
        {{"from",
          json::array({{{"namespaceSelector", {{"matchExpressions", json::array({named})}}}}})},
         {"ports", port(kMetricsPort)}});
  }
  json policy = {{"apiVersion", "networking.k8s.io/v1"},
                 {"kind", "NetworkPolicy"},
                 {"metadata", ObjectMetadata(job, ServiceName(job), context.options.job_labels)},
                 {"spec",
                  {{"podSelector", {{"matchLabels", CoordinatorLabels(job)}}},
                   {"policyTypes", {"Ingress"}},
                   {"ingress", std::move(ingress)}}}};
  Annotate(policy);
  return policy;
}

json CoordinatorBudget(const BuildContext& context) {
  const JobIdentity& job = context.identity;
  json budget = {{"apiVersion", "policy/v1"},
                 {"kind", "PodDisruptionBudget"},
                 {"metadata", ObjectMetadata(job, ServiceName(job), context.options.job_labels)},
                 // Not maxUnavailable: the scale of the pod's owner counts, which is that of nodes.
                 {"spec",
                  {{"minAvailable", 1},
                   // One that serves nobody holds up no drain.
                   {"unhealthyPodEvictionPolicy", "AlwaysAllow"},
                   {"selector", {{"matchLabels", CoordinatorLabels(job)}}}}}};
  Annotate(budget);
  return budget;
}

json AccessSecret(const JobIdentity& job, const std::map<std::string, std::string>& data,
                  const Labels& more_labels) {
  json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"type", "Opaque"},
                 {"metadata", ObjectMetadata(job, AccessSecretName(job), more_labels)},
                 {"data", json::object()}};
  for (const auto& [name, content] : data) secret["data"][name] = Base64(content);
  Annotate(secret);
  return secret;
}

std::string CodeDigest(const json& config_map) {
  std::string text;
  const auto add = [&](const std::string& part) {
    text += std::to_string(part.size()) + ":" + part;
  };
  // nlohmann's objects are ordered by key. "binaryData" is base64: as good as its content.
  for (const char* map : {"data", "binaryData"}) {
    add(map);
    if (!config_map.contains(map) || !config_map[map].is_object()) continue;
    for (const auto& [name, content] : config_map[map].items()) {
      add(name);
      add(content.is_string() ? content.get<std::string>() : content.dump());
    }
  }
  return Hex(XXH3_64bits(text.data(), text.size()));
}

json CodeSnapshot(const JobIdentity& job, const json& source, const Labels& more_labels) {
  json snapshot = {{"apiVersion", "v1"},
                   {"kind", "ConfigMap"},
                   {"immutable", true},
                   {"metadata", ObjectMetadata(job, CodeSnapshotName(job), more_labels)}};
  for (const char* map : {"data", "binaryData"}) {
    if (source.contains(map) && source[map].is_object()) snapshot[map] = source[map];
  }
  snapshot["metadata"]["annotations"][kContentAnnotation] = CodeDigest(source);
  return snapshot;
}

std::string ContentHash(const json& object) {
  const std::string text = object.dump(-1, ' ', false, json::error_handler_t::replace);
  return Hex(XXH3_64bits(text.data(), text.size()));
}

}  // namespace parallelrun::operators
