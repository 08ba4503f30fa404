// What is looked at before a job's first pod: objects that the spec names. What never shows in a
// pod's status (a missing ConfigMap, Secret or claim) is found here, and mended without a word.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <tuple>

#include "api/processes.h"
#include "base/json.h"
#include "operator/plan/draft.h"

namespace parallelrun::operators {
namespace {

using nlohmann::json;
using reasons::Reason;

constexpr Duration kFactsLast = seconds(300);

// Ranks of obstacles; those of pods are in obstacles.cc, 10 to 60.
constexpr int kNameTaken = 100;
constexpr int kNotShared = 90;
constexpr int kMissing = 80;
constexpr int kOutputTaken = 75;
constexpr int kOldPods = 70;
constexpr int kForbidden = 57;  // these two as of what was refused, there
constexpr int kPassing = 12;

bool Has(const std::vector<std::string>& list, const char* word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

Reason NotFound(FactKind kind) {
  if (kind == FactKind::kSecret) return "SecretNotFound";
  if (kind == FactKind::kClaim) return "PersistentVolumeClaimNotFound";
  return "ConfigMapNotFound";
}

void CheckPresent(Draft& draft, FactKind kind, const std::string& name, const char* what,
                  const std::string& used_by) {
  const Fact* const fact = draft.Know(kind, name, kFactsLast);
  if (fact == nullptr || fact->state != Fact::State::kAbsent) return;
  draft.obstacles.push_back({kMissing, NotFound(kind),
                             fmt::format("there is no {} {} in namespace {} ({}): create it, and "
                                         "the job starts by itself",
                                         what, name, draft.identity.name_space, used_by),
                             false});
}

// What a reference like secretKeyRef names, unless it is optional.
void CheckReference(Draft& draft, const json& holder, const char* key, const char* name_key,
                    const std::string& used_by) {
  const json& reference = lenient::At(holder, key);
  const json& name = lenient::At(reference, name_key);
  if (lenient::Boolean(reference, "optional") || !name.is_string()) return;
  const bool secret = std::string_view(key).starts_with("secret");
  CheckPresent(draft, secret ? FactKind::kSecret : FactKind::kConfigMap, name.get<std::string>(),
               secret ? "Secret" : "ConfigMap", used_by);
}

void CheckEnvironment(Draft& draft) {
  const api::Environment& environment = draft.spec.environment;
  for (const json& one : environment.env) {
    const json& from = lenient::At(one, "valueFrom");
    CheckReference(draft, from, "secretKeyRef", "name", "spec.environment.env");
    CheckReference(draft, from, "configMapKeyRef", "name", "spec.environment.env");
  }
  for (const json& one : environment.env_from) {
    CheckReference(draft, one, "secretRef", "name", "spec.environment.envFrom");
    CheckReference(draft, one, "configMapRef", "name", "spec.environment.envFrom");
  }
}

// The kubelet goes on without one, which is right when the image is public; so nothing waits for
// it, and it is told of for as long as nodes are not ready.
void CheckPullSecrets(Draft& draft) {
  for (const json& one : draft.spec.environment.image_pull_secrets) {
    if (!lenient::At(one, "name").is_string()) continue;
    const std::string name = lenient::Text(one, "name");
    const Fact* const fact = draft.Know(FactKind::kSecret, name, kFactsLast);
    if (fact != nullptr && fact->state == Fact::State::kAbsent) {
      draft.obstacles.push_back(
          {0, "ImagePullSecretNotFound", "there is no Secret " + name + " to pull images with"});
    }
  }
}

// A claim that only one host, or only one pod, can mount.
void CheckClaim(Draft& draft, const api::Volume& volume) {
  if (!lenient::At(volume.source, "claimName").is_string()) return;
  const std::string claim = lenient::Text(volume.source, "claimName");
  CheckPresent(draft, FactKind::kClaim, claim, "PersistentVolumeClaim",
               "spec.volumes: " + volume.name);
  const Fact* const fact = draft.Know(FactKind::kClaim, claim, kFactsLast);
  if (fact == nullptr || fact->state != Fact::State::kPresent) return;
  const std::vector<std::string>& modes = fact->access_modes;
  const bool read_only = lenient::Boolean(volume.source, "readOnly");
  const bool shared =
      Has(modes, "ReadWriteMany") || (read_only && Has(modes, "ReadOnlyMany")) || modes.empty();
  if (shared || !MountedOnNodes(draft.spec, volume.name)) return;
  if (!Has(modes, "ReadWriteOnce") && Has(modes, "ReadWriteOncePod")) {
    draft.obstacles.push_back(
        {kNotShared, "VolumeNotShared",
         fmt::format("PersistentVolumeClaim {} is ReadWriteOncePod, but the coordinator and the "
                     "nodes mount it: use a ReadWriteMany class{}",
                     claim,
                     volume.name == draft.spec.output.to.volume
                         ? ", or output.mountOnNodes: false where only the output lies on it"
                         : ""),
         true});
    return;
  }
  draft.status.effective.one_host = true;
}

void CheckStores(Draft& draft) {
  for (const api::ObjectStore& store : draft.spec.stores) {
    const std::string& name = store.credentials.secret_name;
    if (name.empty()) continue;
    CheckPresent(draft, FactKind::kSecret, name, "Secret", "spec.stores: " + store.name);
  }
}

void CheckVolumes(Draft& draft) {
  draft.status.effective.one_host = false;
  for (const api::Volume& volume : draft.spec.volumes) {
    const json holder = {{volume.kind, volume.source}};
    const std::string used_by = "spec.volumes: " + volume.name;
    CheckReference(draft, holder, "secret", "secretName", used_by);
    CheckReference(draft, holder, "configMap", "name", used_by);
    const bool made = volume.name == api::kStateVolume;  // with the pods
    if (volume.kind == "persistentVolumeClaim" && !made) CheckClaim(draft, volume);
  }
}

// Pods of a deleted job of this name may still write where this one wants to.
void CheckOldPods(Draft& draft) {
  for (const PodDigest& pod : draft.seen.old_pods) {
    if (!MayRun(pod, draft.now)) continue;
    draft.obstacles.push_back(
        {kOldPods, "OldPods",
         fmt::format("pod {} of an earlier job of this name is still there: waiting for its end",
                     pod.name),
         false, false});
    return draft.WakeIn(seconds(5));
  }
}

// Whether another job is to have the output before this one. One that has begun keeps it until it
// is over, also while it is suspended; of those that have not, the oldest goes first.
bool GoesFirst(const Draft& draft, const Rival& rival) {
  if (rival.waits && !rival.begun) return false;
  const JobStatus& status = draft.before;
  const bool begun = status.coordinator.incarnation > 0 || status.highest_incarnation > 0;
  if (rival.begun != begun) return rival.begun;
  return std::tie(rival.created, rival.uid) < std::tie(draft.seen.job.created, draft.identity.uid);
}

// What will come of a job whose output another one is making: known now, not when that has ended.
std::string AfterTheOther(api::IfExists if_exists) {
  switch (if_exists) {
    case api::IfExists::kFail:
      return "output.ifExists is Fail, so this job starts only if that one leaves no output, and "
             "fails otherwise; delete one of them, give one of them another output.path, or have a "
             "new job replace what is there (ifExists: Overwrite)";
    case api::IfExists::kOverwrite:
      return "this job starts when it is, and replaces that output; delete that job, or give one "
             "of them another output.path";
    case api::IfExists::kResume:
    case api::IfExists::kRetryFailed: break;
  }
  return "this job starts when it is, and fails if that output is not of a run in its own state "
         "folder; delete that job, or give one of them another output.path";
}

// Two runs that publish to one file: one result would be lost.
void CheckOutput(Draft& draft) {
  const Rival* const rival = WhoHasTheOutput(draft);
  if (rival == nullptr) return;
  draft.obstacles.push_back(
      {kOutputTaken, "OutputTaken",
       OutputTakenBy(draft, *rival) + ": " + AfterTheOther(draft.spec.output.if_exists), false,
       false});
  draft.WakeIn(seconds(5));
}

// Its digest is needed next.
void CopyCode(Draft& draft) {
  Action action{Action::Kind::kSnapshotCode, "the code is copied once, at the job's start"};
  action.resource = "configmaps";
  action.name = draft.spec.code.name;
  if (draft.RefusedLately(action.Target())) return;
  draft.plan.actions.push_back(std::move(action));
  draft.Wake(draft.now);
}

// Whether pods may be made although the code's copy cannot be read. They name it, and what it holds
// is known from before: then a word about it is due only if somebody has to mend something.
bool GoOnUnread(Draft& draft, const Fact& copy, bool digest_known) {
  if (!copy.passing) {
    draft.obstacles.push_back({kForbidden, "Forbidden", copy.error, !digest_known});
  } else if (!digest_known) {
    draft.obstacles.push_back(
        {kPassing, "ApplyFailed", copy.error + "; tried again every 5 seconds", false});
  }
  return digest_known;
}

bool Blocked(const Draft& draft) {
  return draft.plan.waits_for_needs ||
         std::any_of(draft.obstacles.begin(), draft.obstacles.end(),
                     [](const Obstacle& obstacle) { return obstacle.rank > 0; });
}

}  // namespace

const Rival* WhoHasTheOutput(const Draft& draft) {
  const auto& rivals = draft.seen.rivals;
  const auto found = std::find_if(rivals.begin(), rivals.end(),
                                  [&draft](const Rival& rival) { return GoesFirst(draft, rival); });
  return found == rivals.end() ? nullptr : &*found;
}

std::string OutputTakenBy(const Draft& draft, const Rival& rival) {
  const api::Output& output = draft.spec.output;
  return fmt::format("job {}/{} publishes to the same output ({} {}, path {}) and is not over",
                     rival.name_space, rival.name, output.store.empty() ? "volume" : "store",
                     output.store.empty() ? output.to.volume : output.store, output.to.path);
}

bool PrepareStart(Draft& draft) {
  CheckPullSecrets(draft);
  EffectiveStatus& effective = draft.status.effective;
  // Pods that run listen there, whatever the operator is told later.
  effective.coordinator_port = draft.CoordinatorPort();
  if (draft.status.start_time) return true;
  CheckOldPods(draft);
  CheckOutput(draft);
  CheckEnvironment(draft);
  CheckStores(draft);
  CheckVolumes(draft);
  const api::ProcessCount processes = api::EffectiveProcessCount(draft.spec);
  effective.process_count_per_node = processes.count;
  effective.process_count_source = processes.source;
  // An upgraded operator never mixes versions within a job, over a suspension neither.
  if (effective.runtime_image.empty()) effective.runtime_image = draft.options.runtime_image;
  return !Blocked(draft);
}

bool PrepareCode(Draft& draft) {
  if (draft.spec.code.kind != api::CodeKind::kConfigMap) return true;
  std::string& digest = draft.status.effective.code_digest;
  const std::string name = CodeSnapshotName(draft.identity);
  const auto& facts = draft.seen.facts;
  if (draft.FirstVisit() && !facts.contains({FactKind::kConfigMap, name}) &&
      !facts.contains({FactKind::kConfigMap, draft.spec.code.name})) {
    CopyCode(draft);
    return false;
  }
  const Fact* const copy = draft.Know(FactKind::kConfigMap, name, kChildrenLast);
  if (copy == nullptr) return false;
  if (copy->state == Fact::State::kUnreadable) return GoOnUnread(draft, *copy, !digest.empty());
  if (copy->state == Fact::State::kPresent) {
    if (copy->owner_uid != draft.identity.uid) {
      draft.plan.needs.push_back({{FactKind::kConfigMap, name}, seconds(4)});  // it may go away
      draft.WakeIn(seconds(5));
      draft.obstacles.push_back(
          {kNameTaken, "NameTaken",
           fmt::format("ConfigMap {} is there and is not this job's: delete it", name), true});
      return false;
    }
    if (digest.empty()) digest = copy->content;
    if (digest == copy->content) return true;
    draft.obstacles.push_back(
        {kMissing, "CodeChanged",
         fmt::format("ConfigMap {} was deleted while the job ran, and {} has changed since: bring "
                     "its old content back and delete {}",
                     name, draft.spec.code.name, name),
         true});
    return false;
  }
  const size_t before = draft.obstacles.size();
  CheckPresent(draft, FactKind::kConfigMap, draft.spec.code.name, "ConfigMap",
               "spec.code.configMap");
  if (!draft.plan.waits_for_needs && draft.obstacles.size() == before) CopyCode(draft);
  return false;
}

}  // namespace parallelrun::operators
