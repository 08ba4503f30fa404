// Inputs and state: where what one says depends on another.
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "api/fields/read.h"
#include "api/fields/sections.h"
#include "api/parse_parts.h"

namespace parallelrun::api {
namespace {

// Reads the name, and joins it to the names that were `seen`, among which it must be the only one.
void ReadName(Fields& fields, const fields::Field& field, void* input, const std::string& name,
              Target target, std::vector<std::string>& seen) {
  const auto value = fields::ReadField(fields, field, input, target);
  if (!value || name.empty()) return;
  if (std::find(seen.begin(), seen.end(), name) != seen.end()) {
    value->Error(Quoted(name) + " is the name of another input too",
                 "give each of inputs and sideInputs a name of its own");
  }
  seen.push_back(name);
}

Input ReadInput(const Value& map, Target target, std::vector<std::string>& seen) {
  Input input;
  Fields fields(map);
  for (const fields::Field& field : fields::InputFields()) {
    if (field.name != "name") {
      fields::ReadField(fields, field, &input, target);
      continue;
    }
    ReadName(fields, field, &input, input.name, target, seen);
    const std::vector<std::string> given = fields.Present({"files", "tabular", "jsonLines"});
    if (map.node.kind == Node::Kind::kMap && given.size() != 1) {
      fields.Error("has " + (given.empty() ? "no kind" : OrList(given) + " at once"),
                   "write exactly one of files, tabular and jsonLines");
    }
  }
  fields.Finish();
  return input;
}

}  // namespace

void ReadInputs(const Value& list, JobSpec& spec, Target target) {
  const std::string mend =
      fmt::format("write at most {}; put what belongs together below one folder", kMaxInputs);
  std::vector<std::string> seen;
  for (const Value& item : list.List(kMaxInputs, mend)) {
    spec.inputs.push_back(ReadInput(item, target, seen));
  }
}

void ReadSideInputs(const Value& list, JobSpec& spec, Target target) {
  std::vector<std::string> seen;
  for (const Input& input : spec.inputs) seen.push_back(input.name);
  std::vector<std::string> mounts;
  for (const Value& item : list.List(kMaxInputs)) {
    SideInput input;
    Fields fields(item);
    for (const fields::Field& field : fields::SideInputFields()) {
      if (field.name == "name") {
        ReadName(fields, field, &input, input.name, target, seen);
        continue;
      }
      const size_t before = item.problems.size();
      const auto value = fields::ReadField(fields, field, &input, target);
      if (!value || field.name != "mountPath") continue;
      const bool known = std::find(mounts.begin(), mounts.end(), input.mount_path) != mounts.end();
      if (known && item.problems.size() == before) {
        value->Error(Quoted(input.mount_path) + " is the mountPath of another side input too");
      }
      mounts.push_back(input.mount_path);
    }
    fields.Finish();
    if (input.store.empty() && input.from.path.ends_with('/')) input.from.path.pop_back();
    spec.side_inputs.push_back(std::move(input));
  }
}

void ReadStores(const Value& list, JobSpec& spec, Target target) {
  std::vector<std::string> seen;
  for (const Value& item : list.List(kMaxInputs)) {
    ObjectStore store;
    Fields fields(item);
    for (const fields::Field& field : fields::StoreFields()) {
      if (field.name == "name") {
        ReadName(fields, field, &store, store.name, target, seen);
      } else {
        fields::ReadField(fields, field, &store, target);
      }
    }
    fields.Finish();
    spec.stores.push_back(std::move(store));
  }
}

void ReadState(const Value& map, StateOptions& state) {
  Fields fields(map);
  fields::ReadFields(fields, fields::StateFields(), &state, Target::kLocal);
  if (state.ephemeral && !fields.Present({"volume", "path"}).empty()) {
    fields.Error("ephemeral state lies on no volume", "remove volume and path, or ephemeral");
  }
  const auto claim = fields.Take("volumeClaimTemplate");
  const bool other = !state.in.volume.empty() && state.in.volume != kStateVolume;
  if (!state.store.empty() && (claim || state.ephemeral || other)) {
    AddError(map.problems, JoinPath(map.path, "store"),
             "stands beside a volume, a claim or ephemeral", "keep one of them");
  }
  if (claim && (state.ephemeral || other)) {
    claim->Error("stands beside a volume or ephemeral", "keep one of the three");
  }
  fields.Finish();
}

}  // namespace parallelrun::api
