#include "operator/observed.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "api/output_address.h"
#include "azure/read_job.h"
#include "operator/status/json.h"

namespace parallelrun::operators {
namespace {

using lenient::At;
using lenient::Integer;
using lenient::Text;
using nlohmann::json;

// A number in a label or annotation; `missing` when it is none.
int64_t LabelNumber(const json& labels, const char* key, int64_t missing) {
  const std::string text = Text(labels, key);
  if (text.empty() || text.size() > 9 ||
      text.find_first_not_of("0123456789") != std::string::npos) {
    return missing;
  }
  return std::strtoll(text.c_str(), nullptr, 10);
}

// "HOST=2,OTHER=1", as WorkerPod writes it; what is no such list is none.
std::map<std::string, int32_t> ReadFailedHosts(const std::string& text) {
  std::map<std::string, int32_t> hosts;
  for (size_t at = 0; at < text.size();) {
    const size_t equals = text.find('=', at);
    const size_t end = std::min(text.find(',', at), text.size());
    if (equals == std::string::npos || equals >= end || end - equals > 9) return {};
    int32_t failures = 0;
    const char* const stop = text.data() + end;
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, stop, failures);
    if (error != std::errc() || rest != stop) return {};
    hosts[text.substr(at, equals - at)] = failures;
    at = end + 1;
  }
  return hosts;
}

std::string ControllerUid(const json& metadata) {
  for (const json& owner : lenient::List(metadata, "ownerReferences")) {
    if (lenient::Boolean(owner, "controller")) return Text(owner, "uid");
  }
  return "";
}

PodPhase ReadPhase(const std::string& phase) {
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  return phase == "Unknown" ? PodPhase::kUnknown : PodPhase::kPending;
}

std::optional<Ended> ReadEnded(const json& state) {
  const json& terminated = At(state, "terminated");
  if (!terminated.is_object()) return std::nullopt;
  return Ended{static_cast<int32_t>(Integer(terminated, "exitCode")), Text(terminated, "reason"),
               Text(terminated, "message"), TimeAt(terminated, "startedAt").value_or(WallTime{}),
               TimeAt(terminated, "finishedAt").value_or(WallTime{})};
}

ContainerDigest ReadContainer(const json& statuses, const std::string& name) {
  ContainerDigest out;
  for (const json& one : statuses) {
    if (Text(one, "name") != name) continue;
    const json& state = At(one, "state");
    out.running = At(state, "running").is_object();
    out.started = TimeAt(At(state, "running"), "startedAt").value_or(WallTime{});
    out.ready = lenient::Boolean(one, "ready");
    const json& waiting = At(state, "waiting");
    out.waiting_reason = Text(waiting, "reason");
    out.waiting_message = Shortened(Text(waiting, "message"), kMaxMessage);
    out.ended = ReadEnded(state);
    if (!out.ended) out.ended = ReadEnded(At(one, "lastState"));
    out.restarts = Integer(one, "restartCount");
    out.image_id = Text(one, "imageID");
  }
  return out;
}

void ReadConditions(const json& status, PodDigest& out) {
  bool containers_ready = false, unready = false;
  for (const json& condition : lenient::List(status, "conditions")) {
    const std::string type = Text(condition, "type");
    const bool is_true = Text(condition, "status") == "True";
    if (type == "Ready") {
      out.ready = is_true;
      if (is_true) out.ready_since = TimeAt(condition, "lastTransitionTime").value_or(WallTime{});
      // A kubelet gives a reason; what stands in for one that is silent gives none.
      unready = Text(condition, "status") == "False" && Text(condition, "reason").empty();
    }
    if (type == "ContainersReady") containers_ready = is_true;
    if (type == "DisruptionTarget" && is_true) {
      const std::string reason = Text(condition, "reason");
      out.disruption = reason.empty() ? "DisruptionTarget" : reason;
    }
    if (type == "PodScheduled" && Text(condition, "status") == "False") {
      const std::string message = Text(condition, "message");
      out.unschedulable =
          Shortened(message.empty() ? Text(condition, "reason") : message, kMaxMessage);
    }
  }
  out.host_silent = unready && containers_ready;
}

}  // namespace

ObservedJob ReadObservedJob(const json& object) {
  ObservedJob out;
  out.parsed = azure::ReadJob(object, api::Target::kCluster);
  const json& metadata = At(object, "metadata");
  out.name_space = Text(metadata, "namespace");
  out.name = Text(metadata, "name");
  out.uid = Text(metadata, "uid");
  out.resource_version = Text(metadata, "resourceVersion");
  out.generation = Integer(metadata, "generation");
  out.created = TimeAt(metadata, "creationTimestamp").value_or(WallTime{});
  out.deleting = At(metadata, "deletionTimestamp").is_string();
  out.status = ParseStatus(At(object, "status"));
  if (out.parsed.ok()) out.output_address = api::OutputAddress(out.name_space, out.parsed.job.spec);
  return out;
}

std::optional<Rival> RivalOf(const ObservedJob& job) {
  const api::JobSpec& spec = job.parsed.job.spec;
  const bool foreign = !spec.managed_by.empty() && spec.managed_by != kControllerName;
  if (job.deleting || foreign || job.status.Over()) return std::nullopt;
  const JobStatus& status = job.status;
  const bool begun =
      status.start_time || status.coordinator.incarnation > 0 || status.highest_incarnation > 0;
  return Rival{job.name_space, job.name, job.uid, job.created, begun, spec.suspend};
}

PodDigest DigestPod(const json& pod) {
  PodDigest out;
  const json& metadata = At(pod, "metadata");
  const json& labels = At(metadata, "labels");
  out.name = Text(metadata, "name");
  out.uid = Text(metadata, "uid");
  out.job = Text(labels, "parallelrun.dev/job");
  out.job_uid = ControllerUid(metadata);
  out.role = Text(labels, "parallelrun.dev/role") == "coordinator" ? PodRole::kCoordinator
                                                                   : PodRole::kNode;
  out.index = static_cast<int32_t>(LabelNumber(labels, "parallelrun.dev/node", 0));
  out.incarnation = LabelNumber(labels, "parallelrun.dev/incarnation", 0);
  out.failures =
      static_cast<int32_t>(LabelNumber(At(metadata, "annotations"), "parallelrun.dev/failures", 0));
  out.setbacks =
      static_cast<int32_t>(LabelNumber(At(metadata, "annotations"), "parallelrun.dev/setbacks", 0));
  out.failed_hosts =
      ReadFailedHosts(Text(At(metadata, "annotations"), "parallelrun.dev/failed-hosts"));
  out.created = TimeAt(metadata, "creationTimestamp").value_or(WallTime{});
  out.deletion = TimeAt(metadata, "deletionTimestamp");

  const json& status = At(pod, "status");
  out.phase = ReadPhase(Text(status, "phase"));
  out.reason = Text(status, "reason");
  out.message = Shortened(Text(status, "message"), kMaxMessage);
  out.main = ReadContainer(lenient::List(status, "containerStatuses"),
                           out.role == PodRole::kCoordinator ? "coordinator" : "worker");
  out.init = ReadContainer(lenient::List(status, "initContainerStatuses"), "runtime");
  ReadConditions(status, out);
  const ContainerDigest& agent = out.main;
  if (out.role == PodRole::kNode && !out.Terminal() && agent.ended && !agent.running &&
      agent.waiting_reason.empty()) {
    out.lingers = true;
    out.phase = agent.ended->exit_code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
  }
  out.ip = Text(status, "podIP");
  out.node_name = Text(At(pod, "spec"), "nodeName");
  return out;
}

Fact DigestFact(const json& object, WallTime read) {
  Fact out;
  out.read = read;
  const json& metadata = At(object, "metadata");
  out.uid = Text(metadata, "uid");
  out.owner_uid = ControllerUid(metadata);
  out.content = Text(At(metadata, "annotations"), kContentAnnotation);
  for (const json& mode : lenient::List(At(object, "spec"), "accessModes")) {
    if (mode.is_string()) out.access_modes.push_back(mode.get<std::string>());
  }
  out.phase = Text(At(object, "status"), "phase");
  return out;
}

PodEvent DigestEvent(const json& event) {
  PodEvent out;
  out.reason = Text(event, "reason");
  const std::string note = Text(event, "note");
  out.message = Shortened(note.empty() ? Text(event, "message") : note, kMaxMessage);
  out.warning = Text(event, "type") == "Warning";
  for (const auto& time :
       {TimeAt(At(event, "series"), "lastObservedTime"), TimeAt(event, "lastTimestamp"),
        TimeAt(event, "deprecatedLastTimestamp"), TimeAt(event, "eventTime"),
        TimeAt(At(event, "metadata"), "creationTimestamp")}) {
    if (time && *time > out.last) out.last = *time;
  }
  return out;
}

}  // namespace parallelrun::operators
