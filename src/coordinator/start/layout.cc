#include "coordinator/start/layout.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>

#include "store/s3/address.h"

namespace parallelrun {
namespace {

Result<std::string> Resolve(const VolumePath& where, const Volumes& volumes,
                            const std::string& field) {
  const auto found = volumes.find(where.volume);
  if (found == volumes.end()) {
    return Error{Code::kInvalid,
                 fmt::format("{}: volume \"{}\" is no folder here: add --volume {}=FOLDER", field,
                             where.volume, where.volume)};
  }
  std::filesystem::path path = std::filesystem::path(found->second) / where.path;
  std::string text = path.lexically_normal();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// Of an input in a store: its URL, and the path behind it.
Result<std::string> ResolveStore(const JobSpec& spec, const Input& input,
                                 const std::string& field) {
  for (const ObjectStore& store : spec.stores) {
    if (store.name != input.store) continue;
    const Result<s3::Address> address = s3::ParseAddress(store.url);
    if (!address.ok()) return address.error().With(field);
    return address->Url(input.from.path == "." ? "" : input.from.path);
  }
  return Error{Code::kInvalid, fmt::format("{}: there is no store \"{}\"", field, input.store)};
}

PlanKind Kind(const Input& input) {
  if (input.kind == InputKind::kFiles) return PlanKind::kFiles;
  if (input.kind == InputKind::kJsonLines) return PlanKind::kJsonLines;
  return input.tabular.format == TabularFormat::kParquet ? PlanKind::kParquet
                                                         : PlanKind::kDelimited;
}

Status AddInput(const JobSpec& spec, size_t index, const Volumes& volumes, JobLayout& layout) {
  const Input& input = spec.inputs[index];
  const std::string field = fmt::format("spec.inputs[{}] ({})", index, input.name);
  const Result<std::string> root =
      input.store.empty() ? Resolve(input.from, volumes, field) : ResolveStore(spec, input, field);
  if (!root.ok()) return root.error();
  layout.placeholders["inputs." + input.name] = *root;
  if (spec.rank_mini_batch_count > 0) return {};  // the script may read it, nobody splits it
  if (input.kind == InputKind::kJsonLines && !spec.partition_keys.empty()) {
    return Error{Code::kInvalid, field +
                                     ": JSON lines cannot be grouped by spec.partitionKeys: "
                                     "remove the keys, or give the data as files or tabular"};
  }
  PlanInput plan;
  plan.name = input.name;
  plan.root = *root;
  plan.store = input.store;
  plan.pattern = input.pattern;
  plan.exclude = input.exclude;
  plan.kind = Kind(input);
  plan.batch_size = spec.mini_batch_size;
  plan.partition_format = input.partition_format;
  plan.partition_keys = spec.partition_keys;
  plan.tabular = input.tabular;
  const bool table = plan.kind == PlanKind::kDelimited || plan.kind == PlanKind::kParquet;
  plan.decide_types = table && input.tabular.typing == Typing::kOnce;
  layout.inputs.push_back(std::move(plan));
  return {};
}

}  // namespace

Result<JobLayout> LayOut(const Job& job, const Volumes& volumes) {
  const JobSpec& spec = job.spec;
  JobLayout layout;
  const Result<std::string> output = Resolve(spec.output.to, volumes, "spec.output");
  if (!output.ok()) return output.error();
  layout.output_folder = *output;
  if (spec.output.action == OutputAction::kAppendRow) {
    layout.output_path = *output + "/" + spec.output.file_name;
  }
  const Result<std::string> logs = Resolve(spec.logs, volumes, "spec.logs");
  if (!logs.ok()) return logs.error();
  layout.log_folder = *logs;
  const Result<std::string> state = Resolve(spec.state.in, volumes, "spec.state");
  if (!state.ok()) return state.error();
  layout.state_folder = *state;

  layout.placeholders["output"] = *output;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (Status added = AddInput(spec, i, volumes, layout); !added.ok()) return added.error();
  }
  if (spec.rank_mini_batch_count > 0) {
    PlanInput ranks;
    ranks.name = "rankMiniBatchCount";
    ranks.kind = PlanKind::kRanks;
    ranks.batch_size = static_cast<uint64_t>(spec.rank_mini_batch_count);
    layout.inputs.push_back(std::move(ranks));
  }
  for (size_t i = 0; i < spec.side_inputs.size(); ++i) {
    const SideInput& side = spec.side_inputs[i];
    const Result<std::string> path =
        Resolve(side.from, volumes, fmt::format("spec.sideInputs[{}] ({})", i, side.name));
    if (!path.ok()) return path.error();
    layout.placeholders["sideInputs." + side.name] = *path;
  }
  layout.stores = spec.stores;
  layout.forbidden = {layout.output_folder, layout.log_folder, layout.state_folder};
  return layout;
}

}  // namespace parallelrun
