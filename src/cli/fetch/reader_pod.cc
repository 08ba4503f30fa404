#include "cli/fetch/reader_pod.h"

#include <algorithm>
#include <array>

#include "api/job.h"
#include "api/object_names.h"
#include "api/pod_defaults.h"
#include "base/escape.h"
#include "base/json.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

const json& ContainerOf(const json& pod_spec, const char* name) {
  static const json kNone;
  for (const json& container : lenient::List(pod_spec, "containers")) {
    if (lenient::Text(container, "name") == name) return container;
  }
  return kNone;
}

// What a reader takes of a coordinator's pod besides its security: where it may run, and as whom.
constexpr std::array kPlacement = {"imagePullSecrets", "nodeSelector",  "tolerations",
                                   "runtimeClassName", "schedulerName", "serviceAccountName",
                                   "securityContext"};

void TakePlacement(const json& from, json& pod) {
  for (const char* key : kPlacement) {
    const json& value = lenient::At(from, key);
    if (value.is_object() && pod.contains(key)) {
      pod[key].merge_patch(value);
    } else if (!value.is_null()) {
      pod[key] = value;
    }
  }
  // Not that of pods: those that it was to be near to, or far from, are gone.
  const json& affinity = lenient::AtPath(from, "/affinity/nodeAffinity");
  if (affinity.is_object()) pod["affinity"] = {{"nodeAffinity", affinity}};
}

const json& VolumeOf(const json& spec, const std::string& name) {
  static const json kNone;
  for (const json& volume : lenient::List(spec, "volumes")) {
    if (lenient::Text(volume, "name") == name) return volume;
  }
  return kNone;
}

// The pod's spec as the templates of the job make it, and the container's security.
void TakeTemplates(const json& spec, json& pod, json& container) {
  pod["securityContext"] = api::DefaultPodSecurity();
  container["securityContext"] = api::DefaultContainerSecurity();
  const json& secrets = lenient::AtPath(spec, "/environment/imagePullSecrets");
  if (secrets.is_array()) pod["imagePullSecrets"] = secrets;
  json common = lenient::AtPath(spec, "/podTemplate/spec");
  // Those are of nodes.
  if (common.is_object()) common.erase("nodeSelector");
  if (common.is_object()) common.erase("affinity");
  for (const json& from : {common, lenient::AtPath(spec, "/coordinator/podTemplate/spec")}) {
    TakePlacement(from, pod);
    const json& security = lenient::At(ContainerOf(from, "coordinator"), "securityContext");
    if (security.is_object()) container["securityContext"].merge_patch(security);
  }
}

}  // namespace

Result<json> ReaderPod(const json& job, const json& coordinator, const ReaderRequest& request) {
  const json& spec = lenient::At(job, "spec");
  const json& metadata = lenient::At(job, "metadata");
  const json& pod_spec = lenient::At(coordinator, "spec");
  json pod = {{"restartPolicy", "Never"},
              {"activeDeadlineSeconds", request.seconds},
              {"terminationGracePeriodSeconds", 1},
              {"automountServiceAccountToken", false},
              {"enableServiceLinks", false}};
  json container = {{"name", kReaderContainer}};
  std::string image = lenient::Text(lenient::AtPath(job, "/status/effective"), "runtimeImage");
  json volume = VolumeOf(spec, request.volume);
  if (pod_spec.is_object()) {
    const json& own = ContainerOf(pod_spec, "coordinator");
    TakePlacement(pod_spec, pod);
    for (const char* key : {"securityContext", "imagePullPolicy"}) {
      if (own.contains(key)) container[key] = own[key];
    }
    image = lenient::Text(own, "image");
    volume = VolumeOf(pod_spec, request.volume);
  } else {
    TakeTemplates(spec, pod, container);
  }
  // Of the claim that the operator made the job's spec says the template alone.
  if (request.volume == api::kStateVolume && !volume.is_object()) {
    const std::string claim =
        api::StateClaimName(lenient::Text(metadata, "name"), lenient::Text(metadata, "uid"));
    volume = {{"name", request.volume}, {"persistentVolumeClaim", {{"claimName", claim}}}};
  }
  if (image.empty()) return Error{Code::kUnavailable, "the job has not begun: it has no files yet"};
  if (!volume.is_object()) {
    return Error{Code::kCorrupt, "the job has no volume " + Printable(request.volume, kShownLong)};
  }
  container["image"] = image;
  // It does nothing; what reads is executed beside it, and this ends with the pod.
  container["command"] = api::InBundle("parallelrun-agent", {"await", "/nothing"});
  container["resources"] = {{"requests", {{"cpu", "100m"}, {"memory", "64Mi"}}},
                            {"limits", {{"cpu", "1"}, {"memory", "256Mi"}}}};
  container["volumeMounts"] = json::array(
      {{{"name", request.volume}, {"mountPath", MountOf(request.volume)}, {"readOnly", true}}});
  pod["volumes"] = json::array({std::move(volume)});
  pod["containers"] = json::array({std::move(container)});
  return json{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata",
               {{"name", request.name},
                {"labels",
                 {{"app.kubernetes.io/name", "parallelrun"},
                  {"app.kubernetes.io/component", "reader"},
                  {"parallelrun.dev/reader-of", lenient::Text(metadata, "uid")}}},
                {"ownerReferences",
                 {{{"apiVersion", "parallelrun.dev/v1alpha1"},
                   {"kind", "ParallelRunJob"},
                   {"name", lenient::Text(metadata, "name")},
                   {"uid", lenient::Text(metadata, "uid")}}}}}},
              {"spec", std::move(pod)}};
}

int64_t ReaderSeconds(const WantedFiles& wanted) {
  constexpr int64_t kHour = 3600;
  constexpr uint64_t kBytesPerSecond = 1'000'000;
  constexpr uint64_t kMost = 30 * 24 * kHour;
  const uint64_t bytes = wanted.must ? wanted.must->bytes : 0;
  return kHour + static_cast<int64_t>(std::min(bytes / kBytesPerSecond, kMost));
}

std::string WhyNotRunning(const json& pod) {
  const json& status = lenient::At(pod, "status");
  const std::string phase = lenient::Text(status, "phase");
  if (phase == "Failed" || phase == "Succeeded") {
    return Printable("it has ended: " + phase + " " + lenient::Text(status, "reason") + " " +
                         lenient::Text(status, "message"),
                     kShownLong);
  }
  for (const json& container : lenient::List(status, "containerStatuses")) {
    if (lenient::Text(container, "name") != kReaderContainer) continue;
    const json& state = lenient::At(container, "state");
    if (state.contains("running")) return "";
    const json& waiting = lenient::At(state, "waiting");
    const std::string reason = lenient::Text(waiting, "reason");
    const std::string message = lenient::Text(waiting, "message");
    if (!reason.empty()) {
      return Printable(message.empty() ? reason : reason + ": " + message, kShownLong);
    }
  }
  for (const json& condition : lenient::List(status, "conditions")) {
    if (lenient::Text(condition, "type") != "PodScheduled") continue;
    const std::string message = lenient::Text(condition, "message");
    if (!message.empty()) return Printable("no host takes it: " + message, kShownLong);
  }
  return phase.empty() ? "Pending" : Printable(phase, kShownLong);
}

}  // namespace parallelrun::cli
