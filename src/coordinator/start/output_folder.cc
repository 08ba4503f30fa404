#include "coordinator/start/output_folder.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>

#include "api/arguments.h"
#include "azure/script_arguments.h"
#include "base/count_of.h"
#include "base/escape.h"
#include "output/output_claim.h"

namespace parallelrun::coordinator {
namespace {

bool IsOneOf(const std::vector<std::string>& folders, const std::string& path) {
  return std::find(folders.begin(), folders.end(), path) != folders.end();
}

// Whether one of them lies below `path`.
bool LeadsTo(const std::vector<std::string>& folders, const std::string& path) {
  return std::any_of(folders.begin(), folders.end(),
                     [&path](const std::string& folder) { return folder.starts_with(path + "/"); });
}

// `below` is relative to `root`, and ends with a slash where it is not empty.
Result<std::string> Look(const Folder& folder, const std::string& root, const std::string& below,
                         const output::OwnPlaces& own) {
  std::string other;
  std::vector<std::string> to_enter;
  const Status listed = folder.Entries([&](const std::string& name, EntryKind kind) -> Status {
    const std::string path = root + "/" + below + name;
    if (output::IsOwn(own, root, below + name)) return {};
    const bool enters =
        LeadsTo(own.folders, path) || LeadsTo(own.made, path) || IsOneOf(own.made, path);
    if (enters && (kind == EntryKind::kFolder || kind == EntryKind::kUnknown)) {
      to_enter.push_back(name);
      return {};
    }
    if (enters && kind == EntryKind::kLink) return {};  // the way to what is the job's own
    other = below + name;
    return Error{Code::kExists, ""};  // one is enough of what may be millions
  });
  if (!other.empty()) return other;
  if (!listed.ok()) return listed.error();
  for (const std::string& name : to_enter) {
    const Result<std::unique_ptr<Folder>> inner = folder.OpenFolder(name);
    if (!inner.ok()) return inner.error();
    Result<std::string> found = Look(**inner, root, below + name + "/", own);
    if (!found.ok() || !found->empty()) return found;
  }
  return std::string();
}

void WarnOfManifest(const Error& why) {
  spdlog::warn(
      "what this run writes into its output folder cannot be told from what lies there, so that "
      "starting over will leave it there: {}",
      Printable(why.message, 1000));
}

}  // namespace

Result<std::string> FirstOfOthers(const Files& files, const std::string& output_folder,
                                  const output::OwnPlaces& own) {
  const Result<std::unique_ptr<Folder>> folder = files.OpenFolder(output_folder, Links::kRefuse);
  if (!folder.ok()) return folder.error();
  return Look(**folder, output_folder == "/" ? "" : output_folder, "", own);
}

output::OwnPlaces OwnPlacesOf(const CoordinatorConfig& config, const JobLayout& layout) {
  output::OwnPlaces own;
  own.folders = {layout.log_folder, layout.state_folder};
  for (const auto& [name, path] : layout.placeholders) {
    if (name != "output") own.folders.push_back(path);  // inputs
  }
  for (const std::string& folder :
       api::FoldersOfOutput(config.job.spec.arguments, azure::Placeholders())) {
    own.made.push_back(layout.output_folder + "/" + folder);
  }
  return own;
}

Status LookAtOutput(const CoordinatorConfig& config, const JobLayout& layout, const Files& files,
                    NewRun& run) {
  const api::JobSpec& spec = config.job.spec;
  const bool summary = layout.output_path.empty();
  if (spec.state.ephemeral && config.in_pod()) {
    const Result<bool> had = output::IsClaimedBy(
        files, layout.output_folder, summary ? "" : spec.output.file_name, config.resource_uid);
    if (!had.ok()) return had.error();
    run.had_output = *had;
  }
  if (!summary) {
    const Result<bool> there = files.Exists(layout.output_path);
    run.output_there = there.ok() && *there;
    if (!run.output_there) return {};
    const Result<FileFacts> facts = files.Stat(layout.output_path);
    if (facts.ok()) run.output_bytes = facts->size;
    return {};
  }
  if (run.had_output) return {};
  const Result<std::string> found =
      FirstOfOthers(files, layout.output_folder, OwnPlacesOf(config, layout));
  if (!found.ok()) return found.error();
  run.lies_there = *found;
  run.output_there = !found->empty();
  return {};
}

std::string BeginResults(bool with_nothing, const JobLayout& layout, const output::OwnPlaces& own,
                         const Files& files, output::ResultManifest& manifest) {
  if (!with_nothing && !manifest.IsOfAnotherRun()) {
    if (const Status noted = manifest.GoOn(); !noted.ok()) WarnOfManifest(noted.error());
    return "";
  }
  const Result<uint64_t> removed = manifest.Begin();
  if (!removed.ok()) WarnOfManifest(removed.error());
  if (removed.ok() && *removed > 0) {
    spdlog::info("{} of the earlier run removed from {}", CountOf(*removed, "file", "is", "are"),
                 layout.output_folder);
  }
  const Result<std::string> stays = FirstOfOthers(files, layout.output_folder, own);
  if (!stays.ok() || stays->empty()) return "";
  return fmt::format(
      "the output folder is not empty: {} is there, and stays where this run does not write it "
      "anew, since it is not known to be what an earlier run of this job has left",
      Printable(*stays, 300));
}

}  // namespace parallelrun::coordinator
