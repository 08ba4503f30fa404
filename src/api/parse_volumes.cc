// Volumes: one source each; whether it may be missing is for check.cc.
#include <algorithm>

#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/parse_parts.h"

namespace parallelrun::api {
namespace {

constexpr size_t kMaxVolumes = 64;
Volume ReadVolume(const Value& map) {
  Volume volume;
  Fields fields(map);
  if (const auto name = fields.Require("name")) {
    volume.name = name->NonEmptyString(kMaxName).value_or("");
    if (!volume.name.empty() && !IsDnsLabel(volume.name)) {
      name->Error(Quoted(volume.name) + " cannot name a volume",
                  "write lower-case letters, digits and \"-\"");
    }
    if (volume.name == kStateVolume) {
      name->Error(Quoted(volume.name) + " is the name of the claim of state.volumeClaimTemplate",
                  "write another name");
    }
  }
  std::vector<std::string> given;
  for (const fields::Field& kind : fields::VolumeSources()) {
    const auto source = fields.Take(kind.name);
    if (!source) continue;
    given.push_back(kind.name);
    volume.kind = kind.name;
    volume.source = WithoutNulls(source->node);
    fields::CheckShape(*source, kind.shape);
  }
  if (given.size() > 1) {
    fields.Error("has " + std::to_string(given.size()) + " sources (" + OrList(given) + ")",
                 "keep exactly one");
  }
  fields.Finish();
  return volume;
}

}  // namespace

void ReadVolumes(const Value& list, JobSpec& spec) {
  for (const Value& item : list.List(kMaxVolumes)) {
    Volume volume = ReadVolume(item);
    const bool known = std::any_of(spec.volumes.begin(), spec.volumes.end(),
                                   [&](const Volume& other) { return other.name == volume.name; });
    if (known && !volume.name.empty()) {
      AddError(item.problems, JoinPath(item.path, "name"),
               Quoted(volume.name) + " is the name of another volume too",
               "give each volume a name of its own");
    }
    spec.volumes.push_back(std::move(volume));
  }
}

}  // namespace parallelrun::api
