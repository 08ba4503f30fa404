#include "cli/run/preflight.h"

#include <spdlog/fmt/fmt.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>

#include "base/escape.h"
#include "base/files.h"
#include "cli/run/programs.h"
#include "coordinator/start/object_mount.h"
#include "plan/input_names.h"
#include "plan/input_store.h"
#include "store/store.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kScriptPart[] = "script";             // of preflight.py
constexpr uint64_t kMostNamesOfInput = 1000;         // looked at below one input
constexpr uint64_t kLeastRoom = uint64_t{64} << 10;  // for the first records of ledger and logs

std::string Shown(const std::string& path) { return Printable(path, 4096); }

std::string NoFile(const plan::PlanInput& input) {
  if (input.pattern.empty()) {
    return fmt::format("no file below {}: put files there, or correct where the input lies",
                       Shown(input.root));
  }
  return fmt::format(
      "no file matches pattern {} below {}: correct the pattern, or where the input lies",
      Shown(input.pattern), Shown(input.root));
}

// Whether one of the inputs was looked at to its end, so that it can be said that nothing is there.
bool CountFiles(const plan::PlanInput& input, InputSize& size) {
  const plan::InputNames names(input);
  std::error_code error;
  fs::recursive_directory_iterator entry(input.root,
                                         fs::directory_options::follow_directory_symlink, error);
  uint64_t seen = 0;
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (++seen > kMostNamesOfInput) return false;
    const std::string path = entry->path().lexically_relative(input.root);
    std::error_code unknown;
    if (!names.MayMeanBelow(path)) entry.disable_recursion_pending();
    if (!entry->is_regular_file(unknown) || !names.Means(path)) continue;
    ++size.files;
    const uint64_t bytes = entry->file_size(unknown);
    if (!unknown) size.bytes += bytes;
  }
  return !error;
}

// What is wrong with the front of a manifest; a listing of it tells the rest.
std::string CheckManifest(const plan::PlanInput& input, InputSize& size) {
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const std::unique_ptr<store::Store> store = plan::FolderStores(*files)(input);
  const auto any = [](std::string_view) { return true; };
  const auto listing = store->List({any, any}, "");
  const bool may_be_missing = input.allow_empty == api::AllowEmpty::kMissing;
  if (!listing.ok() && may_be_missing && listing.error().code == Code::kNotFound) return "";
  if (!listing.ok()) return listing.error().message;
  for (uint64_t seen = 0; seen < kMostNamesOfInput; ++seen) {
    const auto next = (*listing)->Next();
    if (!next.ok()) return next.error().message;
    if (!*next && seen == 0 && input.allow_empty == api::AllowEmpty::kNever) {
      return fmt::format(
          "the manifest {} names no file: write one path a line, or correct "
          "manifest.path",
          Shown(input.manifest.path));
    }
    if (!*next) return "";
    const auto found = store->Stat(std::string((*next)->name));
    ++size.files;
    if (found.ok() && *found) size.bytes += (*found)->size;
  }
  size.more = true;
  return "";
}

std::string LabelOf(const RunRequest& request, const plan::PlanInput& input) {
  return request.quick ? "--input" : fmt::format("inputs[{}]", input.name);
}

// How another place is chosen for what is to be written.
std::string Elsewhere(const RunRequest& request, const std::string& volume) {
  if (!request.quick) return fmt::format("another folder with --volume {}=FOLDER", volume);
  if (!request.quick->output.url.empty()) return "another folder with --state FOLDER";
  return request.quick->output.file.empty() ? "another folder with --output FOLDER"
                                            : "another file with --output FILE";
}

// The folder itself, or what is there of the way to it.
fs::path NearestThere(fs::path folder) {
  std::error_code ignored;
  while (!fs::exists(folder, ignored) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

std::string CannotWrite(const std::string& folder, const std::string& elsewhere) {
  const fs::path there = NearestThere(folder);
  std::error_code ignored;
  if (!fs::is_directory(there, ignored)) {
    return fmt::format("{} is not a folder: move it away, or choose {}", Shown(there), elsewhere);
  }
  if (eaccess(there.c_str(), W_OK | X_OK) != 0) {
    return fmt::format("{} cannot be written: {}; correct the permissions there, or choose {}",
                       Shown(there), std::strerror(errno), elsewhere);
  }
  struct statvfs facts {};
  if (statvfs(there.c_str(), &facts) != 0 || facts.f_blocks == 0) return "";  // it does not tell
  const uint64_t free = uint64_t{geteuid() == 0 ? facts.f_bfree : facts.f_bavail} * facts.f_frsize;
  if (free >= kLeastRoom) return "";
  return fmt::format("No space left on device: {} has {} free; make room there, or choose {}",
                     Shown(folder), Bytes(free), elsewhere);
}

bool StartsAnew(const LocalJob& job, const RunRequest& request) {
  return !request.resume && !request.retry_failed && !request.overwrite &&
         job.job.spec.output.if_exists == api::IfExists::kFail;
}

}  // namespace

std::string Bytes(uint64_t bytes) {
  constexpr uint64_t kUnit = 1000;
  if (bytes < kUnit) return fmt::format("{} bytes", bytes);
  auto value = static_cast<double>(bytes);
  const char* const* unit = nullptr;
  static constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB"};
  for (const char* const& name : kUnits) {
    if (value < kUnit) break;
    value /= kUnit;
    unit = &name;
  }
  return fmt::format("{:.1f} {}", value, *unit);
}

std::string CheckInput(const plan::PlanInput& input, InputSize& size) {
  std::error_code error;
  const fs::file_status found = fs::status(input.root, error);
  const bool may_be_missing = input.allow_empty == api::AllowEmpty::kMissing;
  if (found.type() == fs::file_type::not_found) {
    if (may_be_missing) return "";
    return fmt::format("{} does not exist; correct where the input lies", Shown(input.root));
  }
  const bool folder = found.type() == fs::file_type::directory;
  if (eaccess(input.root.c_str(), folder ? R_OK | X_OK : R_OK) != 0) {
    return fmt::format("{} cannot be read: {}", Shown(input.root), std::strerror(errno));
  }
  if (found.type() == fs::file_type::regular && input.manifest.path.empty()) {
    ++size.files;
    size.bytes += fs::file_size(input.root, error);
    return "";
  }
  if (!folder && input.manifest.path.empty()) return "";
  if (!input.manifest.path.empty()) return CheckManifest(input, size);
  InputSize own;
  const bool all = CountFiles(input, own);
  size.files += own.files;
  size.bytes += own.bytes;
  size.more |= !all;
  const bool may_be_empty =
      may_be_missing || (input.allow_empty != api::AllowEmpty::kNever && input.pattern.empty());
  return all && own.files == 0 && !may_be_empty ? NoFile(input) : "";
}

std::vector<std::string> CheckInputs(const LocalJob& job, const RunRequest& request,
                                     InputSize& size) {
  std::vector<std::string> problems;
  for (const plan::PlanInput& input : job.layout.inputs) {
    // Of a store the coordinator tells at once what is wrong.
    if (input.kind == plan::PlanKind::kRanks || !input.store.empty()) continue;
    const std::string problem = CheckInput(input, size);
    if (!problem.empty()) problems.push_back(LabelOf(request, input) + ": " + problem);
  }
  // What a run is continued with the coordinator compares, file by file.
  if (!StartsAnew(job, request) && !request.overwrite) problems.clear();
  return problems;
}

std::vector<std::string> CheckOutput(const LocalJob& job, const RunRequest& request) {
  const api::JobSpec& spec = job.job.spec;
  const coordinator::JobLayout& layout = job.layout;
  std::vector<std::string> problems;
  std::set<std::string> told;
  const bool in_store = !layout.output_store.empty();
  const std::string& own = in_store ? spec.state.in.volume : spec.output.to.volume;
  // Those that go to a store are gathered beside the state.
  const std::string& logs = spec.logs.store.empty() ? spec.logs.to.volume : spec.state.in.volume;
  for (const auto& [folder, volume] :
       {std::pair{layout.output_folder, own}, std::pair{layout.log_folder, logs},
        std::pair{layout.state_folder, spec.state.in.volume}}) {
    // One folder that cannot be written stands in the way of all that are to lie below it.
    if (!told.insert(NearestThere(folder)).second) continue;
    const std::string mount = coordinator::ObjectMountAt(folder);
    const std::string problem =
        mount.empty() ? CannotWrite(folder, Elsewhere(request, volume))
                      : coordinator::ObjectMountRefusal("what is written", folder, mount);
    if (!problem.empty()) problems.push_back("output: " + problem);
  }
  std::error_code ignored;
  // Of a store the coordinator tells at once.
  if (!in_store && StartsAnew(job, request) && fs::exists(layout.output_path, ignored)) {
    problems.push_back(fmt::format(
        "output: {} exists: start over with --overwrite, which replaces it, or choose {}",
        Shown(layout.output_path), Elsewhere(request, spec.output.to.volume)));
  }
  return problems;
}

std::vector<std::string> CheckJobFile(LocalJob job) {
  const api::JobSpec& spec = job.job.spec;
  std::vector<std::string> problems;
  std::string script;
  if (HasCodeHere(job)) {
    Result<std::string> found = CheckCode(job);
    if (!found.ok()) problems.push_back("code: " + found.error().message);
    if (found.ok()) script = std::move(*found);
  }
  for (const api::Input& input : spec.inputs) {
    const auto path_of = [&](const std::string& path) {
      return coordinator::PathOf({input.from.volume, path}, job.volumes, "");
    };
    Result<std::string> root = path_of(input.from.path);
    if (!root.ok()) continue;  // a claim, say: --volume will tell where it is
    plan::PlanInput& seen = job.layout.inputs.emplace_back();
    seen.name = input.name;
    seen.root = std::move(*root);
    seen.pattern = input.pattern;
    seen.exclude = input.exclude;
    seen.allow_empty = input.allow_empty;
    if (!input.manifest) continue;
    seen.manifest.path = *path_of(input.manifest->path);
    seen.manifest.format = input.manifest->format;
    seen.manifest.column = input.manifest->column;
    seen.manifest.size_column = input.manifest->size_column;
    seen.manifest.keeps_twice = input.manifest->duplicates == api::Duplicates::kKeep;
  }
  InputSize size;
  const std::vector<std::string> inputs = CheckInputs(job, {}, size);
  problems.insert(problems.end(), inputs.begin(), inputs.end());
  const Result<Programs> programs = FindPrograms();
  if (script.empty() || !programs.ok()) return problems;
  for (const PythonProblem& problem :
       PythonCheck(job, {}, script, programs->python_package).Finish().problems) {
    // What this machine's Python lacks says nothing of the job file, which may be for a cluster.
    if (problem.part == kScriptPart) problems.push_back(problem.part + ": " + problem.text);
  }
  return problems;
}

std::string Facts(const LocalJob& job, const PythonReport& python, const InputSize& size) {
  std::string text;
  if (!python.version.empty()) {
    text = fmt::format("Python {} ({}{}{})", python.version, python.program,
                       job.python_why.empty() ? "" : ", ", job.python_why);
  }
  if (size.files == 0) return text;
  const bool many = size.more || size.files != 1;
  return text + fmt::format("{}{}{} input file{}, {}", text.empty() ? "" : "; ",
                            size.more ? "at least " : "", size.files, many ? "s" : "",
                            Bytes(size.bytes));
}

std::string ListOf(const std::vector<std::string>& problems) {
  std::string text = "nothing was started; fix it and run again:";
  for (const std::string& problem : problems) text += "\n  " + problem;
  return text;
}

}  // namespace parallelrun::cli
