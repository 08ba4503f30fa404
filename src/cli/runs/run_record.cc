#include "cli/runs/run_record.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <stdio.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "api/to_json.h"
#include "azure/read_job.h"
#include "base/escape.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/small_file.h"
#include "base/version.h"
#include "cli/run/quick_output.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kName[] = "/run.json";
constexpr size_t kLongest = size_t{8} << 20;

std::vector<std::string> TextsOf(const json& list) {
  std::vector<std::string> texts;
  for (const json& text : list) {
    if (text.is_string()) texts.push_back(text.get<std::string>());
  }
  return texts;
}

// Every coordinator makes one of these with its first epoch.
bool IsStateFolder(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "epochs", ignored) ||
         fs::is_regular_file(folder / "chain.json", ignored);
}

}  // namespace

Status WriteRunRecord(const std::string& state_folder, const RunRecord& record) {
  const json object = {{"release", kVersion},
                       {"command", record.command},
                       {"folder", record.folder},
                       {"code", record.code},
                       {"scriptFolderFirst", record.script_folder_first},
                       {"job", api::ToJson(record.job)},
                       {"volumes", record.volumes}};
  const std::string text = object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  const std::string path = state_folder + kName;
  const std::string beside = path + ".new";
  const Fd file(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  // Synced before it has its name: a power cut leaves the record of before, or this one, whole.
  if (!file.ok() || pwrite(file.get(), text.data(), text.size(), 0) != ssize_t(text.size()) ||
      fdatasync(file.get()) != 0 || rename(beside.c_str(), path.c_str()) != 0) {
    return ErrnoError(errno, "write " + Printable(path, 1000));
  }
  return {};
}

Result<RunRecord> ReadRunRecord(const std::string& state_folder) {
  const std::string path = state_folder + kName;
  const Result<std::string> text = ReadSmallFile(path, kLongest);
  if (!text.ok() && text.error().code == Code::kNotFound) {
    return Error{Code::kNotFound,
                 fmt::format("{} is not there, which says what was run: the run was none of this "
                             "machine, or of an older release; continue it with --resume, which "
                             "writes it",
                             Printable(path, 1000))};
  }
  if (!text.ok()) return text.error();
  const std::optional<json> object = ParseJson(*text);
  const Error damaged{Code::kInvalid, fmt::format("{} is damaged: continue the run with --resume, "
                                                  "which writes it again",
                                                  Printable(path, 1000))};
  if (!object || !object->is_object()) return damaged;
  RunRecord record;
  record.command = TextsOf(lenient::List(*object, "command"));
  record.folder = lenient::Text(*object, "folder");
  record.code = lenient::Text(*object, "code");
  record.script_folder_first = lenient::Boolean(*object, "scriptFolderFirst");
  for (const auto& [name, folder] : lenient::At(*object, "volumes").items()) {
    if (folder.is_string()) record.volumes[name] = folder.get<std::string>();
  }
  api::ParsedJob parsed = azure::ReadJob(lenient::At(*object, "job"), api::Target::kLocal);
  if (!parsed.ok() || record.code.empty()) return damaged;
  record.job = std::move(parsed.job);
  return record;
}

std::string OutputOf(const RunRequest& request, const coordinator::JobLayout& layout) {
  const bool file = request.quick && !request.quick->output.file.empty();
  const bool stored = !layout.output_store.empty();
  if (stored) return layout.published_path;
  return file ? layout.output_path : layout.output_folder;
}

Result<std::string> FindStateFolder(const std::string& target) {
  std::error_code error;
  fs::path start = fs::absolute(target, error).lexically_normal();
  if (!start.has_filename()) start = start.parent_path();  // "out/"
  const std::string shown = Printable(target, 1000);
  // Before it has succeeded the file is not there.
  const fs::path own = fs::path(RunFolderOf(start)) / "state";
  if (IsStateFolder(own)) return own.string();
  if (!fs::exists(start, error)) {
    return Error{Code::kNotFound,
                 fmt::format("{} does not exist here: give the output folder of a run on this "
                             "machine, its output file, or its state folder",
                             shown)};
  }
  const fs::path folder = fs::is_directory(start, error) ? start : start.parent_path();
  for (const fs::path& near : {folder, folder / "state", folder.parent_path() / "state"}) {
    if (IsStateFolder(near)) return near.string();
  }
  std::vector<fs::path> found;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (IsStateFolder(it->path() / "state")) found.push_back(it->path());
    if (found.size() == 2) {
      return Error{Code::kInvalid,
                   fmt::format("{} holds several jobs: give one of them, such as {}", shown,
                               Printable(found[0].native(), 1000))};
    }
  }
  if (found.size() == 1) return (found[0] / "state").string();
  return Error{Code::kNotFound,
               fmt::format("{} holds no state of a run: give its output folder, or "
                           "its state folder",
                           shown)};
}

}  // namespace parallelrun::cli
