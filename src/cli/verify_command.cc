#include "cli/verify_command.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "api/settings.h"
#include "base/count_of.h"
#include "base/escape.h"
#include "base/json.h"
#include "cli/run/local_run.h"
#include "cli/run/quick_output.h"
#include "cli/runs/inspect_state.h"
#include "output/listed_files.h"
#include "output/output_file.h"
#include "output/own_places.h"
#include "store/s3/s3_store.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kScheme = "s3://";

struct Found {
  std::string state_folder;
  job::JobState state;
  std::string output;  // empty: none was published
};

// A byte of a path that is not UTF-8 becomes a replacement character.
std::string DumpLine(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string Normal(const fs::path& path) {
  std::string text = fs::absolute(path).lexically_normal();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

// Of a section of the spec.
std::string TextOf(const json& job, const char* section, const char* key) {
  return lenient::Text(lenient::At(lenient::At(job, "spec"), section), key);
}

// Where the output is now. Its volume may have been moved since, or be another folder here: on the
// same volume the output still lies as before beside its state.
std::string OutputOf(const std::string& state_folder, const job::JobState& state) {
  const std::string& recorded = state.published()->path;
  const json job = ParseJson(state.settings() ? state.settings()->job : "").value_or(nullptr);
  if (!job.is_object() || recorded.starts_with(kScheme)) return recorded;
  const std::string end = Normal(fs::path("/") / TextOf(job, "state", "path"));
  const bool beside = TextOf(job, "state", "volume") == TextOf(job, "output", "volume") &&
                      end.size() > 1 && state_folder.ends_with(end);
  if (!beside) return recorded;
  const fs::path root = state_folder.substr(0, state_folder.size() - end.size());
  const std::string near =
      (root / TextOf(job, "output", "path") / fs::path(recorded).filename()).lexically_normal();
  std::error_code ignored;
  return fs::exists(near, ignored) ? near : recorded;
}

// The store that holds an output, by what the job says of it: what lies beside the output.
Result<std::unique_ptr<store::Store>> OpenStoreOf(const std::string& url,
                                                  const job::JobState& state) {
  const json job = ParseJson(state.settings() ? state.settings()->job : "").value_or(nullptr);
  store::Wished wished;
  const std::string wanted = TextOf(job, "output", "store");
  for (const json& store : lenient::List(lenient::At(job, "spec"), "stores")) {
    if (lenient::Text(store, "name") != wanted) continue;
    wished.region = lenient::Text(store, "region");
    wished.endpoint = lenient::Text(store, "endpoint");
    if (store.contains("pathStyle")) wished.path_style = lenient::Boolean(store, "pathStyle");
  }
  wished.url = url.substr(0, url.rfind('/'));
  return store::s3::OpenStore(wished, {});
}

std::string NameIn(const std::string& url) { return url.substr(url.rfind('/') + 1); }

// Of an object of a store: all of it is read.
Result<std::string> DamageInStore(const std::string& url, const job::JobState& state) {
  const Result<std::unique_ptr<store::Store>> store = OpenStoreOf(url, state);
  if (!store.ok()) return store.error();
  const Result<std::unique_ptr<store::Object>> object = (*store)->Open(NameIn(url));
  if (!object.ok() && object.error().code == Code::kNotFound) return std::string("is not there");
  if (!object.ok()) return object.error();
  return output::DamageOf(
      (*object)->found().size,
      [&](uint64_t offset, std::span<char> to) { return (*object)->ReadAt(offset, to); },
      *state.published());
}

// Nothing where there is no ledger.
Result<std::unique_ptr<Found>> ReadState(const Files& files, const std::string& folder) {
  auto found = std::make_unique<Found>();
  found->state_folder = folder;
  const Result<uint64_t> run =
      InspectState(files, folder,
                   [&](const job::Record& record, const job::Place& place, const job::Place& rows) {
                     return found->state.Apply(record, place, rows);
                   });
  if (!run.ok() && run.error().code == Code::kNotFound) return std::unique_ptr<Found>();
  if (!run.ok()) return run.error();
  if (found->state.published()) found->output = OutputOf(folder, found->state);
  return found;
}

// Where a state folder may be: itself, and on the output's volume as a job or a script has it.
std::vector<fs::path> Candidates(const fs::path& folder, const std::string& wanted) {
  const fs::path beside = fs::path(RunFolderOf(wanted)) / "state";
  std::error_code absent;
  if (fs::is_directory(beside, absent)) return {beside};
  std::vector<fs::path> all = {folder, folder / "state", folder.parent_path() / "state"};
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    all.push_back(it->path() / "state");
  }
  return all;
}

int NoLedger(const std::string& path) {
  fmt::print(stderr,
             "{} has no ledger beside it that it could be compared with: give the state folder of "
             "its job\n",
             Printable(path, 1000));
  return kExitUsage;
}

Result<output::ListedFiles> CheckSideFiles(const Files& files, const std::string& output,
                                           const job::JobState& state) {
  if (!output.starts_with(kScheme)) return output::CheckListedFiles(files, output);
  const Result<std::unique_ptr<store::Store>> store = OpenStoreOf(output, state);
  if (!store.ok()) return store.error();
  return output::CheckListedFiles(**store, NameIn(output));
}

std::string SideFilesText(const output::ListedFiles& found) {
  if (found.damaged == 0) {
    return fmt::format("whole: {} ({})\n", CountOf(found.files, "side file"),
                       CountOf(found.bytes, "byte"));
  }
  const uint64_t more = found.damaged - 1;
  return fmt::format("damaged: the side file {}{}; put it back, or start over with --overwrite\n",
                     found.first, more > 0 ? fmt::format(", and {} more", more) : "");
}

int PrintChecked(const Result<OutputCheck>& check, bool as_json) {
  if (!check.ok()) {
    fmt::print(stderr, "{}\n", check.error().message);
    return kExitFailed;
  }
  fmt::print("{}", as_json ? DumpLine(CheckJson(*check)) : CheckText(*check));
  return check->whole() ? kExitOk : kExitFailed;
}

}  // namespace

Result<OutputCheck> CheckPublished(const Files& files, const std::string& state_folder,
                                   const job::JobState& state) {
  OutputCheck check;
  check.path = OutputOf(state_folder, state);
  check.rows = state.published()->rows;
  check.bytes = state.published()->bytes;
  if (state.settings()) check.trial = api::TrialOf(state.settings()->plan_settings);
  Result<std::string> damage = check.path.starts_with(kScheme)
                                   ? DamageInStore(check.path, state)
                                   : output::DamageOf(files, check.path, *state.published());
  if (!damage.ok()) return damage.error();
  check.damage = std::move(*damage);
  if (!check.damage.empty() || !state.stages_side_files()) return check;
  Result<output::ListedFiles> side_files = CheckSideFiles(files, check.path, state);
  if (!side_files.ok()) return side_files.error();
  check.side_files = std::move(*side_files);
  return check;
}

std::string CheckText(const OutputCheck& check) {
  const std::string path = Printable(check.path, 1000);
  if (!check.damage.empty()) {
    return fmt::format("damaged: {} {}; the job's command with --resume publishes it again\n", path,
                       check.damage);
  }
  const char* const line = check.path.ends_with(output::kSideListName) ? "side file" : "row";
  const std::string text = fmt::format("whole: {} ({}, {}){}\n", path, CountOf(check.rows, line),
                                       CountOf(check.bytes, "byte"),
                                       check.trial.empty() ? "" : ", of a trial on " + check.trial);
  return text + (check.side_files ? SideFilesText(*check.side_files) : "");
}

json CheckJson(const OutputCheck& check) {
  json object = {{"state", check.whole() ? "whole" : "damaged"},
                 {"output", check.path},
                 {"rows", check.rows},
                 {"bytes", check.bytes},
                 {"trial", check.trial},
                 {"damage", check.damage},
                 {"sideFiles", nullptr}};
  if (const auto& files = check.side_files) {
    object["sideFiles"] = {{"files", files->files},
                           {"bytes", files->bytes},
                           {"damaged", files->damaged},
                           {"first", files->first}};
  }
  return object;
}

int VerifyOutput(const std::string& path, bool as_json) {
  const std::unique_ptr<Files> files = MakeSystemFiles();
  std::string wanted = Normal(path);
  if (path.starts_with(kScheme)) {
    // Its state lies where the command puts it, if nobody says otherwise.
    const Result<QuickOutput> place = LookAtOutput(path);
    if (!place.ok()) {
      fmt::print(stderr, "{}\n", place.error().message);
      return kExitUsage;
    }
    wanted = Normal(place->folder);
  }
  std::error_code ignored;
  const bool folder = fs::is_directory(wanted, ignored);
  const fs::path start = folder ? fs::path(wanted) : fs::path(wanted).parent_path();
  std::unique_ptr<Found> fitting;
  for (const fs::path& candidate : Candidates(start, wanted)) {
    Result<std::unique_ptr<Found>> found = ReadState(*files, Normal(candidate));
    if (!found.ok()) {
      fmt::print(stderr, "{}\n", found.error().message);
      return kExitFailed;
    }
    if (!*found) continue;
    const bool given = (*found)->state_folder == wanted ||
                       (*found)->state_folder == RunFolderOf(wanted) + "/state";
    const fs::path output = (*found)->output;
    const bool below = folder && (output.parent_path() == wanted ||
                                  (*found)->state_folder.starts_with(wanted + "/"));
    const bool fits = given || below || output == wanted;
    if (!fits) continue;
    if (fitting) {
      fmt::print(stderr, "{} holds several jobs: give the output file or the state folder of one\n",
                 Printable(wanted, 1000));
      return kExitUsage;
    }
    fitting = std::move(*found);
    if (given) break;
  }
  if (!fitting) return NoLedger(wanted);
  if (!fitting->state.published()) {
    if (as_json) {
      fmt::print("{}", DumpLine({{"state", "unpublished"}, {"output", nullptr}}));
      return kExitFailed;
    }
    fmt::print(
        "never published: the job in {} has not succeeded yet, or its script writes the "
        "output itself\n",
        Printable(fitting->state_folder, 1000));
    return kExitFailed;
  }
  return PrintChecked(CheckPublished(*files, fitting->state_folder, fitting->state), as_json);
}

}  // namespace parallelrun::cli
