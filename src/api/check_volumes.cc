// The rules about volumes: which there are, and what lies where on them.
#include "api/check_parts.h"
#include "api/parse_parts.h"
#include "base/escape.h"
#include "base/json.h"

namespace parallelrun::api {
namespace {

const Volume* FindVolume(const JobSpec& spec, const std::string& name) {
  for (const Volume& volume : spec.volumes) {
    if (volume.name == name) return &volume;
  }
  return nullptr;
}

class VolumeChecker {
 public:
  VolumeChecker(const JobSpec& spec, Target target, Problems& problems)
      : spec_(spec), target_(target), problems_(problems) {}

  void Check() {
    CheckSources();
    CheckNames();
    CheckWritable();
    CheckOverlaps();
  }

 private:
  // On one machine --volume can say what a volume is.
  void CheckSources() {
    if (target_ == Target::kLocal) return;
    for (size_t i = 0; i < spec_.volumes.size(); ++i) {
      const std::string field = JoinPath("spec.volumes", i);
      if (!spec_.volumes[i].kind.empty() || HasProblemBelow(problems_, field)) continue;
      AddError(problems_, field, "has no source",
               "write one, such as persistentVolumeClaim: {claimName: CLAIM}");
    }
  }

  void CheckVolume(const std::string& name, const std::string& field) {
    if (name.empty() || FindVolume(spec_, name) != nullptr) return;
    std::vector<std::string> names;
    for (const Volume& volume : spec_.volumes) names.push_back(volume.name);
    const std::string closest = ClosestName(name, names);
    std::string mend = "add it to spec.volumes";
    if (!closest.empty()) {
      mend = "did you mean " + closest + "?";
    } else if (!names.empty()) {
      mend += ", or write " + OrList(names);
    }
    AddError(problems_, field, "there is no volume " + Quoted(name), mend);
  }

  // Of logs or state: the default is the output's, which was looked at, or the claim's.
  void CheckOwnVolume(const std::string& name, const std::string& field) {
    const bool made = name == kStateVolume &&
                      (!spec_.state.claim_template.is_null() || !spec_.state.store.empty());
    if (name != spec_.output.to.volume && !made) CheckVolume(name, field);
  }

  void CheckNames() {
    if (spec_.code.kind == CodeKind::kVolume) CheckVolume(spec_.code.name, "spec.code.volume");
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      CheckVolume(spec_.inputs[i].from.volume, InputPath(spec_, i) + ".volume");
    }
    for (size_t i = 0; i < spec_.side_inputs.size(); ++i) {
      CheckVolume(spec_.side_inputs[i].from.volume, JoinPath("spec.sideInputs", i) + ".volume");
    }
    CheckVolume(spec_.output.to.volume, "spec.output.volume");
    CheckOwnVolume(spec_.logs.to.volume, "spec.logs.volume");
    CheckOwnVolume(spec_.state.in.volume, "spec.state.volume");
  }

  void CheckWritable(const VolumePath& place, const std::string& field) {
    const Volume* const volume = FindVolume(spec_, place.volume);
    if (volume == nullptr) return;
    // Of a state that lies in a store nothing is lost with it; logs would be.
    const bool scratch = !spec_.state.store.empty() && &place == &spec_.state.in;
    const bool lost = !scratch && (volume->kind == "emptyDir" || volume->kind == "ephemeral");
    if (lost && !spec_.state.ephemeral) {
      AddError(problems_, field,
               "the volume " + Quoted(volume->name) + " is an " + volume->kind +
                   ", which is lost with its pod",
               "write a volume that stays, or state: {ephemeral: true} if that is meant");
    }
    const bool read_only_kind = volume->kind == "configMap" || volume->kind == "secret" ||
                                volume->kind == "downwardAPI" || volume->kind == "projected" ||
                                volume->kind == "image";
    const bool read_only = lenient::Boolean(volume->source, "readOnly");
    if (read_only_kind || read_only) {
      AddError(problems_, field, "the volume " + Quoted(volume->name) + " is read-only",
               "write a volume that can be written to");
    }
  }

  void CheckWritable() {
    CheckWritable(spec_.output.to, "spec.output.volume");
    if (spec_.logs.to.volume != spec_.output.to.volume) {
      CheckWritable(spec_.logs.to, "spec.logs.volume");
    }
    if (spec_.state.in.volume != spec_.output.to.volume) {
      CheckWritable(spec_.state.in, "spec.state.volume");
    }
  }

  // A place in a form in which two names of one folder are the same: "claim digits/images/".
  std::string Root(const VolumePath& place) const {
    const Volume* const volume = FindVolume(spec_, place.volume);
    std::string root = "volume " + place.volume;
    if (volume != nullptr && volume->source.is_object()) {
      const auto text = [&](const char* key) {
        const auto found = volume->source.find(key);
        return found != volume->source.end() && found->is_string() ? found->get<std::string>()
                                                                   : std::string();
      };
      if (volume->kind == "persistentVolumeClaim") root = "claim " + text("claimName");
      if (volume->kind == "hostPath") root = "host " + text("path");
    }
    while (root.ends_with('/')) root.pop_back();
    return place.path == "." ? root + "/" : root + "/" + place.path + "/";
  }

  // As its owner knows it: on the host, or in its volume. Whole: paths differ at their end.
  std::string Shown(const VolumePath& place) const {
    std::string root = Root(place);
    if (!root.starts_with("host ")) return '"' + Printable(place.path, kShownLong) + '"';
    root = root.substr(5);
    while (root.size() > 1 && root.ends_with('/')) root.pop_back();
    return '"' + Printable(root, kShownLong) + '"';
  }

  void CheckOverlaps() {
    const struct {
      const char* field;
      const char* what;
      const VolumePath& place;
    } written[] = {{"spec.output", "the output", spec_.output.to},
                   {"spec.logs", "the log folder", spec_.logs.to},
                   {"spec.state", "the state folder", spec_.state.in}};
    for (size_t i = 0; i < spec_.inputs.size(); ++i) {
      const VolumePath& from = spec_.inputs[i].from;
      std::string field;
      std::string inside;
      bool several = false;
      for (const auto& one : written) {
        if (from.volume.empty() || one.place.volume.empty()) continue;
        if (!Root(one.place).starts_with(Root(from))) continue;
        if (field.empty()) field = std::string(one.field) + ".path";
        several = !inside.empty();
        inside += (several ? ", " : "") + std::string(one.what) + " (" + Shown(one.place) + ")";
      }
      if (inside.empty()) continue;
      AddError(problems_, field,
               inside + (several ? " are" : " is") + " inside the input " +
                   Quoted(spec_.inputs[i].name) + " (" + Shown(from) + ")",
               kOutside);
    }
    for (const auto& one : written) {
      for (const auto& other : written) {
        if (&other >= &one || one.place.volume.empty() || other.place.volume.empty()) continue;
        if (Root(other.place) != Root(one.place)) continue;
        AddError(problems_, std::string(one.field) + ".path",
                 std::string(one.what) + " is " + other.what + " too", "write a path of its own");
      }
    }
  }

  const JobSpec& spec_;
  const Target target_;
  Problems& problems_;
};

}  // namespace

void CheckVolumes(const JobSpec& spec, Target target, Problems& problems) {
  VolumeChecker(spec, target, problems).Check();
}

}  // namespace parallelrun::api
