#include "cli/verify_command.h"

#include <spdlog/fmt/fmt.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/escape.h"
#include "cli/run/local_run.h"
#include "coordinator/ledger/ledger.h"
#include "coordinator/output_file.h"

namespace parallelrun {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Found {
  std::string state_folder;
  JobState state;
  std::string output;  // empty: none was published
};

std::string Normal(const fs::path& path) {
  std::string text = fs::absolute(path).lexically_normal();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

std::string TextAt(const json& job, const char* pointer) {
  const json::json_pointer at(pointer);
  return job.contains(at) && job[at].is_string() ? job[at].get<std::string>() : "";
}

// Where the output is now. Its volume may have been moved since, or be another folder here: on the
// same volume the output still lies as before beside its state.
std::string OutputOf(const std::string& state_folder, const JobState& state) {
  const std::string& recorded = state.published()->path;
  const json job = json::parse(state.settings() ? state.settings()->job : "", nullptr, false);
  if (!job.is_object()) return recorded;
  const std::string end = Normal(fs::path("/") / TextAt(job, "/spec/state/path"));
  const bool beside = TextAt(job, "/spec/state/volume") == TextAt(job, "/spec/output/volume") &&
                      end.size() > 1 && state_folder.ends_with(end);
  if (!beside) return recorded;
  const fs::path root = state_folder.substr(0, state_folder.size() - end.size());
  const std::string near =
      (root / TextAt(job, "/spec/output/path") / fs::path(recorded).filename()).lexically_normal();
  std::error_code ignored;
  return fs::exists(near, ignored) ? near : recorded;
}

// Nothing where there is no ledger.
Result<std::unique_ptr<Found>> ReadState(const Files& files, const std::string& folder) {
  auto found = std::make_unique<Found>();
  found->state_folder = folder;
  const Result<uint64_t> run = Ledger::Inspect(
      files, folder, [&](const Record& record, const Place& place, const Place& rows) {
        return found->state.Apply(record, place, rows);
      });
  if (!run.ok() && run.error().code == Code::kNotFound) return std::unique_ptr<Found>();
  if (!run.ok()) return run.error();
  if (found->state.published()) found->output = OutputOf(folder, found->state);
  return found;
}

// Where a state folder may be: itself, and on the output's volume as a job or a script has it.
std::vector<fs::path> Candidates(const fs::path& folder) {
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

}  // namespace

int PrintOutput(const Files& files, const std::string& state_folder, const JobState& state) {
  const std::string path = OutputOf(state_folder, state);
  const Result<std::string> damage = DamageOf(files, path, *state.published());
  if (!damage.ok()) {
    fmt::print(stderr, "{}\n", damage.error().message);
    return kExitFailed;
  }
  if (damage->empty()) {
    fmt::print("whole: {} ({} rows, {} bytes)\n", Printable(path, 1000), state.published()->rows,
               state.published()->bytes);
    return kExitOk;
  }
  fmt::print("damaged: {} {}; the job's command with --resume publishes it again\n",
             Printable(path, 1000), *damage);
  return kExitFailed;
}

int VerifyOutput(const std::string& path) {
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const std::string wanted = Normal(path);
  std::error_code ignored;
  const bool folder = fs::is_directory(wanted, ignored);
  const fs::path start = folder ? fs::path(wanted) : fs::path(wanted).parent_path();
  std::unique_ptr<Found> fitting;
  for (const fs::path& candidate : Candidates(start)) {
    Result<std::unique_ptr<Found>> found = ReadState(*files, Normal(candidate));
    if (!found.ok()) {
      fmt::print(stderr, "{}\n", found.error().message);
      return kExitFailed;
    }
    if (!*found) continue;
    const bool given = (*found)->state_folder == wanted;
    const fs::path output = (*found)->output;
    const bool fits = folder ? output.parent_path() == wanted || given ||
                                   (*found)->state_folder.starts_with(wanted + "/")
                             : output == wanted;
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
    fmt::print(
        "never published: the job in {} has not succeeded yet, or its script writes the "
        "output itself\n",
        Printable(fitting->state_folder, 1000));
    return kExitFailed;
  }
  return PrintOutput(*files, fitting->state_folder, fitting->state);
}

}  // namespace parallelrun
