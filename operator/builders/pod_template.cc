#include "operator/builders/pod_template.h"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

namespace parallelrun::operators {
namespace {

using nlohmann::json;

// Lists whose entries are merged by these keys; any other list is replaced as a whole.
const std::vector<std::string>* MergeKeys(const std::string& list) {
  static const std::map<std::string, std::vector<std::string>> kKeys = {
      {"containers", {"name"}},
      {"initContainers", {"name"}},
      {"volumes", {"name"}},
      {"env", {"name"}},
      {"imagePullSecrets", {"name"}},
      {"resourceClaims", {"name"}},
      {"volumeMounts", {"mountPath"}},
      {"volumeDevices", {"devicePath"}},
      {"ports", {"containerPort", "protocol"}},
      {"hostAliases", {"ip"}},
      {"tolerations", {"key", "effect"}},
      {"topologySpreadConstraints", {"topologyKey", "whenUnsatisfiable"}},
  };
  const auto found = kKeys.find(list);
  return found == kKeys.end() ? nullptr : &found->second;
}

bool SameEntry(const json& a, const json& b, const std::vector<std::string>& keys) {
  if (!a.is_object() || !b.is_object()) return false;
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) {
    return a.value(key, json()) == b.value(key, json());
  });
}

void Merge(const std::string& name, const json& from, json& into);

void MergeList(const json& from, const std::vector<std::string>& keys, json& into) {
  for (const json& entry : from) {
    const auto found = std::find_if(
        into.begin(), into.end(), [&](const json& other) { return SameEntry(entry, other, keys); });
    if (found == into.end()) {
      into.push_back(entry);
    } else {
      Merge("", entry, *found);
    }
  }
}

// What stands for one of several things: a volume's source, a variable's value. The other one goes.
void DropOtherSource(const json& from, json& into) {
  static constexpr std::array kKept = {"name", "readOnly"};
  if (from.contains("valueFrom")) into.erase("value");
  if (from.contains("value")) into.erase("valueFrom");
  if (!into.contains("emptyDir") || from.size() < 2) return;
  const bool other_source =
      std::any_of(from.items().begin(), from.items().end(), [](const auto& f) {
        return std::find(kKept.begin(), kKept.end(), f.key()) == kKept.end() &&
               f.key() != "emptyDir";
      });
  if (other_source) into.erase("emptyDir");
}

void Merge(const std::string& name, const json& from, json& into) {
  if (from.is_object() && into.is_object()) {
    DropOtherSource(from, into);
    for (const auto& [key, value] : from.items()) {
      if (value.is_null()) {
        into.erase(key);
      } else if (into.contains(key)) {
        Merge(key, value, into[key]);
      } else {
        into[key] = value;
      }
    }
    return;
  }
  const std::vector<std::string>* const keys = MergeKeys(name);
  if (keys != nullptr && from.is_array() && into.is_array()) return MergeList(from, *keys, into);
  into = from;
}

json* FindContainer(json& pod, const char* list, const std::string& name) {
  json& spec = pod["spec"];
  if (!spec.contains(list)) return nullptr;
  for (json& container : spec[list]) {
    if (container.is_object() && container.contains("name") && container["name"] == name) {
      return &container;
    }
  }
  return nullptr;
}

bool IsOurs(const json& container) {
  static constexpr std::array kOurs = {"worker", "coordinator", "runtime"};
  if (!container.is_object() || !container.contains("name")) return false;
  return std::any_of(kOurs.begin(), kOurs.end(),
                     [&](const char* name) { return container["name"] == name; });
}

// What makes a pod this job's, as it was before the merge.
void Restore(const json& ours, json& pod) {
  json& metadata = pod["metadata"];
  for (const char* key : {"name", "namespace", "ownerReferences"}) {
    metadata[key] = ours["metadata"][key];
  }
  for (const char* key : {"generateName", "finalizers"}) metadata.erase(key);
  for (const char* map : {"labels", "annotations"}) {
    if (!ours["metadata"].contains(map)) continue;
    if (!metadata[map].is_object()) metadata[map] = json::object();
    metadata[map].update(ours["metadata"][map]);
  }
  pod["spec"]["restartPolicy"] = ours["spec"]["restartPolicy"];
  for (const char* list : {"containers", "initContainers"}) {
    if (!ours["spec"].contains(list)) continue;
    for (const json& mine : ours["spec"][list]) {
      if (!IsOurs(mine)) continue;
      json* const container = FindContainer(pod, list, mine["name"]);
      if (container == nullptr) continue;
      container->erase("args");
      (*container)["command"] = mine["command"];
      // ParallelRun's own programs; the worker's image is the user's.
      if (mine["name"] != "worker") (*container)["image"] = mine["image"];
    }
  }
}

// The template without what concerns the other kind of pod.
json Applicable(const json& pod_template, const TemplateUse& use) {
  json out = json::object();
  for (const char* part : {"metadata", "spec"}) {
    if (pod_template.contains(part) && pod_template[part].is_object()) {
      out[part] = pod_template[part];
    }
  }
  if (!out.contains("spec")) return out;
  json& spec = out["spec"];
  if (!use.placement_and_size) {
    for (const char* key : {"nodeSelector", "affinity", "resources"}) spec.erase(key);
  }
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list) || !spec[list].is_array()) continue;
    json kept = json::array();
    for (const json& container : spec[list]) {
      if (!IsOurs(container) || container["name"] == use.container) kept.push_back(container);
    }
    spec[list] = std::move(kept);
    if (spec[list].empty()) spec.erase(list);
  }
  return out;
}

}  // namespace

void MergePodTemplate(const json& pod_template, const TemplateUse& use, json& pod) {
  if (!pod_template.is_object()) return;
  const json ours = pod;
  Merge("", Applicable(pod_template, use), pod);
  Restore(ours, pod);
}

}  // namespace parallelrun::operators
