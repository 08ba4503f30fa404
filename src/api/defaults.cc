#include "api/defaults.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/object_names.h"

namespace parallelrun::api {
namespace {

void FillPlace(VolumePath& place, const std::string& volume, const std::string& path) {
  if (place.volume.empty()) place.volume = volume;
  if (place.path.empty()) place.path = path;
}

uint64_t DefaultMiniBatchSize(const JobSpec& spec) {
  const bool tabular = !spec.inputs.empty() && spec.inputs[0].kind == InputKind::kTabular;
  return tabular ? 1 << 20 : 10;
}

// One that is made with the pods: nobody writes it.
void AddStateVolume(JobSpec& spec, Volume made) {
  const bool there = std::any_of(spec.volumes.begin(), spec.volumes.end(),
                                 [](const Volume& one) { return one.name == kStateVolume; });
  if (!there) spec.volumes.push_back(std::move(made));
}

// Where the state is in a store, what is of the coordinator's machine alone has a folder there.
void FillStateInStore(JobSpec& spec) {
  AddStateVolume(spec, {kStateVolume, "emptyDir", nlohmann::json::object()});
  const bool beside = spec.state.store == spec.output.store && spec.output.to.path != ".";
  FillPlace(spec.state.in, kStateVolume,
            (beside ? spec.output.to.path + "/" : std::string()) + ".parallelrun");
  if (spec.logs.store.empty() && spec.logs.to.volume.empty()) spec.logs.store = spec.state.store;
}

// The volume of the state is one like others to all but those who make it.
void FillStateVolume(JobSpec& spec, Volume made) {
  AddStateVolume(spec, std::move(made));
  FillPlace(spec.state.in, kStateVolume, "state");
  // Nobody else has anything on it.
  if (!spec.output.store.empty() && spec.logs.store.empty() && spec.logs.to.volume.empty()) {
    FillPlace(spec.logs.to, kStateVolume, "logs");
  }
}

// Where the output is: a folder beside it, or objects beside its own. A run on this machine keeps
// it here, where nobody else asks for it and a commit costs no request.
void FillState(Job& job, Target target) {
  JobSpec& spec = job.spec;
  const bool claim = !spec.state.claim_template.is_null();
  const bool on_volume = !spec.state.in.volume.empty() && spec.state.in.volume != kStateVolume;
  const bool unsaid = spec.state.store.empty() && !claim && !on_volume && !spec.state.ephemeral;
  const bool in_store = unsaid && !spec.output.store.empty();
  if (in_store && target == Target::kCluster) spec.state.store = spec.output.store;
  if (!spec.state.store.empty()) {
    FillStateInStore(spec);
  } else if (claim) {
    FillStateVolume(spec, {kStateVolume,
                           "persistentVolumeClaim",
                           {{"claimName", StateClaimName(job.metadata.name, job.metadata.uid)}}});
  } else if (in_store) {
    FillStateVolume(spec, {kStateVolume, "hostPath", {{"path", job.metadata.name + ".run"}}});
  }
}

}  // namespace

void FillDefaults(Job& job, Target target) {
  JobSpec& spec = job.spec;
  const std::string& name = job.metadata.name;
  if (spec.output.to.path.empty()) spec.output.to.path = name + "/output";
  FillState(job, target);
  if (!spec.state.ephemeral) FillPlace(spec.state.in, spec.output.to.volume, name + "/state");
  if (!spec.logs.store.empty()) {
    if (spec.logs.to.path.empty()) spec.logs.to.path = name + "/logs";
  } else {
    // Beside the output, if that is a folder; else beside the state.
    const bool in_store = !spec.output.store.empty();
    FillPlace(spec.logs.to, in_store ? spec.state.in.volume : spec.output.to.volume,
              name + "/logs");
  }
  for (Input& input : spec.inputs) {
    if (input.from.path.empty()) input.from.path = ".";
    if (input.kind == InputKind::kTabular && input.tabular.delimiter.empty()) {
      input.tabular.delimiter = input.tabular.format == TabularFormat::kTsv ? "\t" : ",";
    }
  }
  for (SideInput& input : spec.side_inputs) {
    if (input.from.path.empty()) input.from.path = ".";
  }
  if (spec.code.kind == CodeKind::kVolume && spec.code.path.empty()) spec.code.path = ".";
  if (spec.mini_batch_size == 0) spec.mini_batch_size = DefaultMiniBatchSize(spec);
  if (spec.progress_update_timeout == Duration::zero()) {
    spec.progress_update_timeout =
        std::max<Duration>(3 * spec.run_invocation_timeout + seconds(30), seconds(300));
  }
  if (spec.coordinator.resources.is_null()) {
    spec.coordinator.resources = {{"requests", {{"cpu", "100m"}, {"memory", "128Mi"}}},
                                  {"limits", {{"cpu", "1"}, {"memory", "512Mi"}}}};
  }
}

JobSpec DefaultSpec() {
  Job job;
  FillDefaults(job, Target::kLocal);
  return std::move(job.spec);
}

Duration InitTimeout(const JobSpec& spec) {
  if (spec.init_timeout) return *spec.init_timeout;
  return std::max<Duration>(
      {seconds(1800), 3 * spec.run_invocation_timeout + seconds(30), spec.progress_update_timeout});
}

int64_t NodeRestartLimit(const JobSpec& spec, int32_t highest_node_count, int64_t lost) {
  if (spec.node_restart_limit) return *spec.node_restart_limit;
  return 3 * static_cast<int64_t>(highest_node_count) + kDeathsOfOne * (lost + 1);
}

}  // namespace parallelrun::api
