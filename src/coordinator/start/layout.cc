#include "coordinator/start/layout.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>

#include "api/enums.h"
#include "job/side_inputs.h"
#include "output/own_places.h"
#include "plan/input_names.h"
#include "plan/source.h"
#include "store/object_stores.h"

namespace parallelrun::coordinator {
namespace {

// What lies in a store: its URL, and the path behind it.
Result<std::string> ResolveStore(const api::JobSpec& spec, const std::string& name,
                                 const std::string& path, const std::string& field) {
  for (const api::ObjectStore& store : spec.stores) {
    if (store.name != name) continue;
    Result<std::string> url = store::StoreUrl(store.url, path == "." ? "" : path);
    if (!url.ok()) return url.error().With(field);
    return url;
  }
  return Error{Code::kInvalid, fmt::format("{}: there is no store \"{}\"", field, name)};
}

Status PlaceOutput(const api::JobSpec& spec, const Volumes& volumes, JobLayout& layout) {
  const api::Output& output = spec.output;
  if (output.store.empty()) {
    Result<std::string> folder = PathOf(output.to, volumes, "spec.output");
    if (!folder.ok()) return folder.error();
    layout.output_folder = std::move(*folder);
    layout.placeholders["output"] = layout.output_folder;
    layout.stages = output.side_files == api::SideFiles::kStaged;
    if (output.action == api::OutputAction::kAppendRow) {
      layout.published_path = layout.output_path = layout.output_folder + "/" + output.file_name;
    } else if (layout.stages) {
      layout.published_path = layout.output_folder + "/" + output::kSideListName;
    }
    return {};
  }
  const bool rows = output.action == api::OutputAction::kAppendRow;
  layout.output_store = output.store;
  layout.output_name = (output.to.path == "." ? "" : output.to.path + "/") +
                       (rows ? output.file_name : output::kSideListName);
  Result<std::string> url = ResolveStore(spec, output.store, layout.output_name, "spec.output");
  if (!url.ok()) return url.error();
  layout.published_path = std::move(*url);
  if (rows) layout.output_path = layout.published_path;
  layout.stages = output.side_files == api::SideFiles::kStaged;
  const std::filesystem::path beside = layout.state_folder;
  layout.output_folder = beside.parent_path() / "outputs";
  if (layout.stages) layout.placeholders["output"] = layout.output_folder;
  return {};
}

Status PlaceState(const api::JobSpec& spec, const Volumes& volumes, JobLayout& layout) {
  const api::StateOptions& state = spec.state;
  const bool in_store = !state.store.empty();
  Result<std::string> folder = PathOf(
      in_store ? api::VolumePath{state.in.volume, "state"} : state.in, volumes, "spec.state");
  if (!folder.ok()) return folder.error();
  layout.state_folder = std::move(*folder);
  if (!in_store) return {};
  Result<std::string> url = ResolveStore(spec, state.store, state.in.path, "spec.state");
  if (!url.ok()) return url.error();
  layout.state_store = state.store;
  layout.state_url = std::move(*url);
  return {};
}

// After the state.
Status PlaceLogs(const api::JobSpec& spec, const Volumes& volumes, JobLayout& layout) {
  const api::Logs& logs = spec.logs;
  if (logs.store.empty()) {
    Result<std::string> folder = PathOf(logs.to, volumes, "spec.logs");
    if (!folder.ok()) return folder.error();
    layout.log_folder = std::move(*folder);
    return {};
  }
  Result<std::string> url = ResolveStore(spec, logs.store, logs.to.path, "spec.logs");
  if (!url.ok()) return url.error();
  layout.log_store = logs.store;
  layout.log_url = std::move(*url);
  // Beside the state; within it where that is all of its volume.
  const std::filesystem::path state = layout.state_folder;
  const bool whole =
      layout.state_store.empty() && (spec.state.in.path == "." || spec.state.in.path.empty());
  layout.log_folder = (whole ? state : state.parent_path()) / "logs";
  return {};
}

plan::PlanKind Kind(const api::Input& input) {
  if (input.kind == api::InputKind::kFiles) return plan::PlanKind::kFiles;
  if (input.kind == api::InputKind::kJsonLines) return plan::PlanKind::kJsonLines;
  return input.tabular.format == api::TabularFormat::kParquet ? plan::PlanKind::kParquet
                                                              : plan::PlanKind::kDelimited;
}

Status AddInput(const api::JobSpec& spec, size_t index, const Volumes& volumes, JobLayout& layout) {
  const api::Input& input = spec.inputs[index];
  const std::string field = fmt::format("spec.inputs[{}] ({})", index, input.name);
  const std::string path(plan::WithoutSlash(input.from.path));
  const Result<std::string> root = input.store.empty()
                                       ? PathOf(input.from, volumes, field)
                                       : ResolveStore(spec, input.store, path, field);
  if (!root.ok()) return root.error();
  layout.placeholders["inputs." + input.name] = *root;
  if (spec.rank_mini_batch_count > 0) return {};  // the script may read it, nobody splits it
  if (input.kind == api::InputKind::kJsonLines && !spec.partition_keys.empty()) {
    return Error{Code::kInvalid, field +
                                     ": JSON lines cannot be grouped by spec.partitionKeys: "
                                     "remove the keys, or give the data as files or tabular"};
  }
  plan::PlanInput plan;
  plan.name = input.name;
  plan.root = *root;
  plan.store = input.store;
  plan.is_prefix = path != input.from.path;
  plan.urls = input.access == api::Access::kUri;
  plan.pattern = input.pattern;
  plan.exclude = input.exclude;
  plan.kind = Kind(input);
  plan.batch_size = spec.mini_batch_size;
  plan.partition_format = input.partition_format;
  plan.partition_keys = spec.partition_keys;
  plan.allow_empty = input.allow_empty;
  plan.tabular = input.tabular;
  const bool table =
      plan.kind == plan::PlanKind::kDelimited || plan.kind == plan::PlanKind::kParquet;
  plan.decide_types = table && input.tabular.typing == api::Typing::kOnce;
  if (input.manifest) {
    const std::string& at = input.manifest->path;
    Result<std::string> manifest =
        input.store.empty() ? PathOf({input.from.volume, at}, volumes, field + ".manifest")
                            : ResolveStore(spec, input.store, at, field + ".manifest");
    if (!manifest.ok()) return manifest.error();
    if (!input.store.empty()) plan.manifest.below = *root + "/";
    plan.manifest.path = std::move(*manifest);
    plan.manifest.format = input.manifest->format;
    plan.manifest.column = input.manifest->column;
    plan.manifest.size_column = input.manifest->size_column;
    plan.manifest.keeps_twice = input.manifest->duplicates == api::Duplicates::kKeep;
    plan.manifest.etag_column = input.manifest->etag_column;
    plan.decide_types = true;
  }
  layout.inputs.push_back(std::move(plan));
  return {};
}

Status AddSideInput(const api::JobSpec& spec, size_t index, const Volumes& volumes,
                    JobLayout& layout) {
  const api::SideInput& side = spec.side_inputs[index];
  const std::string field = fmt::format("spec.sideInputs[{}] ({})", index, side.name);
  const std::string path(plan::WithoutSlash(side.from.path));
  Result<std::string> place = side.store.empty() ? PathOf(side.from, volumes, field)
                                                 : ResolveStore(spec, side.store, path, field);
  if (!place.ok()) return place.error();
  std::string& stands_for = layout.placeholders["sideInputs." + side.name];
  if (side.store.empty()) {
    stands_for = std::move(*place);
    return {};
  }
  stands_for = job::SideInputMark(side.name);
  plan::PlanInput in_store;
  in_store.name = side.name;
  in_store.root = std::move(*place);
  in_store.store = side.store;
  in_store.is_prefix = path != side.from.path;
  layout.side_inputs.push_back(std::move(in_store));
  return {};
}

// Whether inputs lie below the folder of the output, where nothing but that file and what stands
// beside it is written: it is no part of them.
bool MayHoldInputs(const JobLayout& layout) {
  const std::string below = layout.output_folder + "/";
  return !layout.output_path.empty() &&
         std::any_of(
             layout.inputs.begin(), layout.inputs.end(),
             [&below](const plan::PlanInput& input) { return input.root.starts_with(below); }) &&
         std::none_of(layout.inputs.begin(), layout.inputs.end(),
                      [&below](const plan::PlanInput& input) {
                        return below.starts_with(input.root + "/");
                      });
}

}  // namespace

Result<std::string> PathOf(const api::VolumePath& where, const Volumes& volumes,
                           const std::string& field) {
  const auto found = volumes.find(where.volume);
  if (found == volumes.end()) {
    return Error{Code::kInvalid,
                 fmt::format("{}: volume \"{}\" is not a folder here: add --volume {}=FOLDER",
                             field, where.volume, where.volume)};
  }
  std::filesystem::path path = std::filesystem::path(found->second) / where.path;
  std::string text = path.lexically_normal();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Result<JobLayout> LayOut(const api::Job& job, const Volumes& volumes,
                         const std::map<std::string, std::string>& store_keys) {
  const api::JobSpec& spec = job.spec;
  JobLayout layout;
  if (Status placed = PlaceState(spec, volumes, layout); !placed.ok()) return placed.error();
  if (Status placed = PlaceLogs(spec, volumes, layout); !placed.ok()) return placed.error();
  if (Status placed = PlaceOutput(spec, volumes, layout); !placed.ok()) return placed.error();
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    if (Status added = AddInput(spec, i, volumes, layout); !added.ok()) return added.error();
  }
  plan::ShareNames(layout.inputs);
  if (spec.rank_mini_batch_count > 0) {
    plan::PlanInput ranks;
    ranks.name = "rankMiniBatchCount";
    ranks.kind = plan::PlanKind::kRanks;
    ranks.batch_size = static_cast<uint64_t>(spec.rank_mini_batch_count);
    layout.inputs.push_back(std::move(ranks));
  }
  for (size_t i = 0; i < spec.side_inputs.size(); ++i) {
    if (Status added = AddSideInput(spec, i, volumes, layout); !added.ok()) return added.error();
  }
  for (const api::ObjectStore& store : spec.stores) {
    store::Wished& wished = layout.stores[store.name];
    wished = {store.url, store.region, store.endpoint, store.path_style, {}};
    if (store.encryption) {
      wished.encryption = {std::string(api::EnumWord(store.encryption->algorithm)),
                           store.encryption->kms_key_id};
    }
    const auto keys = store_keys.find(store.name);
    if (keys == store_keys.end()) continue;
    wished.keys = {keys->second, "Secret " + store.credentials.secret_name};
  }
  layout.forbidden = {layout.log_folder, layout.state_folder};
  if (!MayHoldInputs(layout)) layout.forbidden.push_back(layout.output_folder);
  return layout;
}

std::string SideFolderOf(const JobLayout& layout) {
  const size_t slash = layout.output_name.rfind('/');
  return slash == std::string::npos ? "" : layout.output_name.substr(0, slash + 1);
}

}  // namespace parallelrun::coordinator
