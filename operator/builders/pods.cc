#include <algorithm>
#include <limits>

#include "api/pod_defaults.h"
#include "operator/builders/object_room.h"
#include "operator/builders/objects.h"
#include "operator/builders/placement.h"
#include "operator/builders/pod_parts.h"
#include "operator/builders/pod_template.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;

constexpr char kConfigFolder[] = "/etc/parallelrun";
constexpr char kWorkFolder[] = "/var/lib/parallelrun";
constexpr char kReadyFile[] = "/var/lib/parallelrun/ready";
constexpr char kHome[] = "/var/lib/parallelrun/home";

json EmptyDir(const char* name) { return {{"name", name}, {"emptyDir", json::object()}}; }

json Mount(const std::string& name, const std::string& path, bool read_only = false) {
  json mount = {{"name", name}, {"mountPath", path}};
  if (read_only) mount["readOnly"] = true;
  return mount;
}

// How long a pod stays on a host that does not answer.
json Tolerations(int on_dead_host) {
  json out = json::array();
  for (const char* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    out.push_back({{"key", key},
                   {"operator", "Exists"},
                   {"effect", "NoExecute"},
                   {"tolerationSeconds", on_dead_host}});
  }
  return out;
}

// Where the user's group is given to volumes, nobody else may read.
int SecretMode(const OperatorOptions& options) {
  return options.pod_security_defaults ? 0440 : 0444;
}

json AccessVolume(const BuildContext& context, json items) {
  return {{"name", "parallelrun-access"},
          {"secret",
           {{"secretName", AccessSecretName(context.identity)},
            {"defaultMode", SecretMode(context.options)},
            {"items", std::move(items)}}}};
}

json Item(const std::string& key, const std::string& path) {
  return {{"key", key}, {"path", path}};
}

json PullSecrets(const BuildContext& context) {
  const json& users = context.spec.environment.image_pull_secrets;
  json out = users.is_array() ? users : json::array();
  for (const std::string& name : context.options.image_pull_secrets) {
    const json secret = {{"name", name}};
    if (std::find(out.begin(), out.end(), secret) == out.end()) out.push_back(secret);
  }
  return out;
}

// metadata and what every pod's spec has.
json BarePod(const BuildContext& context, const std::string& name, const char* role,
             int64_t incarnation) {
  json metadata = ObjectMetadata(context.identity, name, context.options.job_labels);
  metadata["labels"]["app.kubernetes.io/component"] = role;
  metadata["labels"]["parallelrun.dev/role"] = role;
  metadata["labels"]["parallelrun.dev/incarnation"] = std::to_string(incarnation);
  json spec = {{"automountServiceAccountToken", false}, {"enableServiceLinks", false}};
  if (const json security = PodSecurity(context.options); !security.is_null()) {
    spec["securityContext"] = security;
  }
  if (json secrets = PullSecrets(context); !secrets.empty()) {
    spec["imagePullSecrets"] = std::move(secrets);
  }
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", std::move(metadata)},
          {"spec", std::move(spec)}};
}

json Secured(const BuildContext& context, json container) {
  if (json security = ContainerSecurity(context.options); !security.is_null()) {
    container["securityContext"] = std::move(security);
  }
  return container;
}

// The user's variables, and ours where the user has none of that name.
json Environment(const api::JobSpec& spec) {
  json out = json::array();
  const auto set = [&](const char* name, const char* value) {
    const bool given =
        std::any_of(spec.environment.env.begin(), spec.environment.env.end(),
                    [&](const json& one) { return one.contains("name") && one["name"] == name; });
    if (!given) out.push_back({{"name", name}, {"value", value}});
  };
  set("HOME", kHome);
  set("USER", "parallelrun");
  set("LOGNAME", "parallelrun");
  set("XDG_CACHE_HOME", "/var/lib/parallelrun/home/.cache");
  for (const json& one : spec.environment.env) out.push_back(one);
  return out;
}

// The keys of stores that the job names, and no more of their Secrets: all for the coordinator,
// which signs what nodes read. A script could read whatever is in a node's pod.
void AddStoreKeys(const BuildContext& context, bool on_node, json& volumes, json& mounts) {
  const api::JobSpec& spec = context.spec;
  for (size_t i = 0; i < spec.stores.size(); ++i) {
    const api::ObjectStore& store = spec.stores[i];
    const api::StoreCredentials& keys = store.credentials;
    if (keys.secret_name.empty()) continue;
    if (on_node && !store.node_credentials) continue;
    json items = json::array(
        {Item(keys.access_key_id, "accessKeyId"), Item(keys.secret_access_key, "secretAccessKey")});
    if (!keys.session_token.empty()) items.push_back(Item(keys.session_token, "sessionToken"));
    const std::string name = StoreKeysVolume(i);
    volumes.push_back({{"name", name},
                       {"secret",
                        {{"secretName", keys.secret_name},
                         {"defaultMode", SecretMode(context.options)},
                         {"items", std::move(items)}}}});
    mounts.push_back(Mount(name, StoreKeysFolder(store), true));
  }
}

void AddSideMounts(const api::JobSpec& spec, json& mounts) {
  for (const api::SideInput& input : spec.side_inputs) {
    if (input.mount_path.empty()) continue;
    json mount = Mount(input.from.volume, input.mount_path, true);
    if (input.from.path != ".") mount["subPath"] = input.from.path;
    mounts.push_back(std::move(mount));
  }
}

// Succeeds when the program has made its --ready-file, and waits until then: a probe that is
// answered with no leaves a Warning event each time, though nothing is wrong with a start that
// takes long. For the same reason it is asked seldom, or no more, once it has succeeded: one that
// meets a container that has just ended fails too.
json AwaitReady(int period) {
  constexpr int kAtMost = 3600;
  return {{"exec", {{"command", api::InBundle("parallelrun-agent", {"await", kReadyFile})}}},
          {"periodSeconds", period},
          {"timeoutSeconds", kAtMost}};
}

// A program in a pod ends with 0 when it was told to go and has: the pod is Completed then.
std::vector<std::string> PodArguments(std::vector<std::string> arguments) {
  for (const char* more : {"--ready-file", kReadyFile, "--drained-exit", "0"}) {
    arguments.emplace_back(more);
  }
  return arguments;
}

// Nodes may take as long for init() as they need, so no number of failures ends them.
json StartupProbe() {
  json probe = AwaitReady(1);
  probe["failureThreshold"] = std::numeric_limits<int32_t>::max();
  return probe;
}

json WorkerContainer(const BuildContext& context, json mounts) {
  const api::JobSpec& spec = context.spec;
  json worker = {
      {"name", "worker"},
      {"image", spec.environment.image},
      {"command",
       api::InBundle(
           "parallelrun-agent",
           PodArguments({"--config", std::string(kConfigFolder) + "/agent.json", "--log-json"}))},
      {"startupProbe", StartupProbe()},
      {"env", Environment(spec)},
      {"volumeMounts", std::move(mounts)}};
  if (!spec.environment.image_pull_policy.empty()) {
    worker["imagePullPolicy"] = spec.environment.image_pull_policy;
  }
  if (!spec.environment.env_from.empty()) worker["envFrom"] = spec.environment.env_from;
  if (spec.resources.is_object()) worker["resources"] = spec.resources;
  return Secured(context, std::move(worker));
}

// Its first answer comes a second after the coordinator has begun
// (coordinator/start/start_server.h).
json LivenessProbe() {
  return {{"httpGet", {{"path", "/healthz"}, {"port", "metrics"}}},
          {"initialDelaySeconds", 5},
          {"periodSeconds", 30},
          {"timeoutSeconds", 5},
          {"failureThreshold", 2}};
}

json CoordinatorContainer(const BuildContext& context, json mounts) {
  json coordinator = {
      {"name", "coordinator"},
      {"image", context.runtime_image},
      {"imagePullPolicy", context.options.runtime_image_pull_policy},
      {"command",
       api::InBundle("parallelrun-coordinator",
                     PodArguments({"--config", std::string(kConfigFolder) + "/coordinator.json",
                                   "--json-log"}))},
      {"ports",
       json::array(
           {{{"name", "https"}, {"containerPort", context.coordinator_port}, {"protocol", "TCP"}},
            {{"name", "metrics"}, {"containerPort", 9102}, {"protocol", "TCP"}}})},
      // No startup probe: until that has succeeded nobody would ask whether it lives.
      {"readinessProbe", AwaitReady(60)},
      {"livenessProbe", LivenessProbe()},
      {"resources", context.spec.coordinator.resources},
      {"volumeMounts", std::move(mounts)}};
  coordinator = Secured(context, std::move(coordinator));
  if (coordinator.contains("securityContext")) {
    coordinator["securityContext"]["readOnlyRootFilesystem"] = true;
  }
  return coordinator;
}

json* Container(json& pod, const char* list, const char* name) {
  for (json& container : pod["spec"][list]) {
    if (container.is_object() && container.contains("name") && container["name"] == name) {
      return &container;
    }
  }
  return nullptr;
}

}  // namespace

json PodSecurity(const OperatorOptions& options) {
  return options.pod_security_defaults ? api::DefaultPodSecurity() : nullptr;
}

json ContainerSecurity(const OperatorOptions& options) {
  return options.pod_security_defaults ? api::DefaultContainerSecurity() : nullptr;
}

std::string StoreKeysFolder(const api::ObjectStore& store) {
  return "/etc/parallelrun-stores/" + store.name;
}

// A store's name need not be one of Kubernetes'.
std::string StoreKeysVolume(size_t index) { return "parallelrun-store-" + std::to_string(index); }

bool MountedOnNodes(const api::JobSpec& spec, const std::string& volume) {
  if (volume == api::kStateVolume) return false;
  const bool own = spec.output.store.empty()
                       ? !spec.output.mount_on_nodes && volume == spec.output.to.volume
                       : volume == spec.logs.to.volume || volume == spec.state.in.volume;
  if (!own) return true;
  const auto reads = [&](const auto& one) { return one.from.volume == volume; };
  return std::any_of(spec.inputs.begin(), spec.inputs.end(), reads) ||
         std::any_of(spec.side_inputs.begin(), spec.side_inputs.end(), reads) ||
         (spec.code.kind == api::CodeKind::kVolume && spec.code.name == volume);
}

void AddUserVolumes(const api::JobSpec& spec, bool on_nodes, json& volumes, json& mounts) {
  for (const api::Volume& volume : spec.volumes) {
    if (on_nodes && !MountedOnNodes(spec, volume.name)) continue;
    const auto is = [&](const api::VolumePath& place) { return place.volume == volume.name; };
    const auto reads = [&](const auto& one) { return is(one.from); };
    const bool written = is(spec.output.to) || is(spec.logs.to) || is(spec.state.in);
    const bool read = std::any_of(spec.inputs.begin(), spec.inputs.end(), reads) ||
                      std::any_of(spec.side_inputs.begin(), spec.side_inputs.end(), reads) ||
                      (spec.code.kind == api::CodeKind::kVolume && spec.code.name == volume.name);
    volumes.push_back({{"name", volume.name}, {volume.kind, volume.source}});
    mounts.push_back(Mount(volume.name, "/mnt/" + volume.name, read && !written));
  }
}

std::string FailedHosts(const std::map<std::string, int32_t>& failed_hosts) {
  std::string text;
  for (const auto& [host, failures] : failed_hosts) {
    text += (text.empty() ? "" : ",") + host + "=" + std::to_string(failures);
  }
  return text;
}

json WorkerPod(const BuildContext& context, int32_t index, const PodNumber& number) {
  const api::JobSpec& spec = context.spec;
  const std::string node = std::to_string(index);
  json pod = BarePod(context, NodePodName(context.identity, index, number.incarnation), "node",
                     number.incarnation);
  pod["metadata"]["labels"]["parallelrun.dev/node"] = node;
  pod["metadata"]["annotations"] = {{"parallelrun.dev/failures", std::to_string(number.failures)},
                                    {"kubectl.kubernetes.io/default-container", "worker"}};

  if (const std::string hosts = FailedHosts(number.failed_hosts); !hosts.empty()) {
    pod["metadata"]["annotations"]["parallelrun.dev/failed-hosts"] = hosts;
  }
  if (number.setbacks > 0) {
    pod["metadata"]["annotations"]["parallelrun.dev/setbacks"] = std::to_string(number.setbacks);
  }

  json volumes = json::array(
      {EmptyDir("parallelrun-runtime"), EmptyDir("parallelrun-work"), EmptyDir("parallelrun-tmp")});
  volumes.push_back(
      AccessVolume(context, json::array({Item("agent.json", "agent.json"), Item("ca.crt", "ca.crt"),
                                         Item("node-" + node + ".json", "node.json")})));
  json mounts =
      json::array({Mount("parallelrun-runtime", api::kBundleFolder, true),
                   Mount("parallelrun-work", kWorkFolder), Mount("parallelrun-tmp", "/tmp"),
                   Mount("parallelrun-access", kConfigFolder, true)});
  if (spec.code.kind == api::CodeKind::kConfigMap) {
    volumes.push_back({{"name", "parallelrun-code"},
                       {"configMap", {{"name", CodeSnapshotName(context.identity)}}}});
    mounts.push_back(Mount("parallelrun-code", "/opt/code", true));
  }
  if (spec.shared_memory) {
    volumes.push_back(
        {{"name", "parallelrun-shm"},
         {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", std::to_string(*spec.shared_memory)}}}});
    mounts.push_back(Mount("parallelrun-shm", "/dev/shm"));
  }
  AddStoreKeys(context, true, volumes, mounts);
  AddUserVolumes(spec, true, volumes, mounts);
  AddSideMounts(spec, mounts);

  json& out = pod["spec"];
  out["restartPolicy"] = "Never";
  out["terminationGracePeriodSeconds"] = 60;
  out["tolerations"] = Tolerations(30);
  out["volumes"] = std::move(volumes);
  out["initContainers"] = json::array({Secured(
      context, {{"name", "runtime"},
                {"image", context.runtime_image},
                {"imagePullPolicy", context.options.runtime_image_pull_policy},
                {"command", api::InBundle("parallelrun-agent", {"install", "/target"})},
                {"volumeMounts", json::array({Mount("parallelrun-runtime", "/target")})}})});
  out["containers"] = json::array({WorkerContainer(context, std::move(mounts))});

  MergePodTemplate(spec.pod_template, {"worker", true}, pod);
  json* const worker = Container(pod, "containers", "worker");
  json* const runtime = Container(pod, "initContainers", "runtime");
  // Without any, the kubelet evicts the pod before all others, and a ResourceQuota refuses it.
  if (worker != nullptr && !worker->contains("resources")) {
    (*worker)["resources"] = {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}}};
  }
  if (worker != nullptr) AddObjectRoom(spec, (*worker)["resources"]);
  if (worker != nullptr && runtime != nullptr) (*runtime)["resources"] = (*worker)["resources"];
  AvoidHosts(number.failed_hosts, pod);
  SayDisruption(context.spec, pod);
  Place(context, pod);
  return pod;
}

json CoordinatorPod(const BuildContext& context, int64_t incarnation) {
  json pod = BarePod(context, CoordinatorPodName(context.identity, incarnation), "coordinator",
                     incarnation);
  json volumes =
      json::array({EmptyDir("parallelrun-work"), EmptyDir("parallelrun-tmp"),
                   AccessVolume(context, json::array({
                                             Item("coordinator.json", "coordinator.json"),
                                             Item("tls.crt", "tls.crt"),
                                             Item("tls.key", "tls.key"),
                                         }))});
  json mounts =
      json::array({Mount("parallelrun-work", kWorkFolder), Mount("parallelrun-tmp", "/tmp"),
                   Mount("parallelrun-access", kConfigFolder, true)});
  AddStoreKeys(context, false, volumes, mounts);
  AddUserVolumes(context.spec, false, volumes, mounts);
  json& out = pod["spec"];
  out["restartPolicy"] = "OnFailure";
  out["terminationGracePeriodSeconds"] = 30;
  out["tolerations"] = Tolerations(0);
  out["volumes"] = std::move(volumes);
  out["containers"] = json::array({CoordinatorContainer(context, std::move(mounts))});

  MergePodTemplate(context.spec.pod_template, {"coordinator", false}, pod);
  MergePodTemplate(context.spec.coordinator.pod_template, {"coordinator", true}, pod);
  SayDisruption(context.spec, pod);
  Place(context, pod);
  return pod;
}

}  // namespace parallelrun::operators
