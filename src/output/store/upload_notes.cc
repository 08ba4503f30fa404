#include "output/store/upload_notes.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/small_file.h"
#include "output/output_index.h"

namespace parallelrun::output {
namespace {

using nlohmann::json;

constexpr size_t kMost = size_t{64} << 10;
constexpr std::string_view kSuffix = ".json";

std::string FolderOfNotes(const std::string& state_folder) { return state_folder + "/uploads"; }

std::string NoteName(uint32_t epoch) { return fmt::format("{:06}{}", epoch, kSuffix); }

// Nothing for any other name, however like one it looks.
std::optional<uint32_t> EpochOfNote(const std::string& name) {
  uint32_t epoch = 0;
  std::from_chars(name.data(), name.data() + name.size(), epoch);
  return NoteName(epoch) == name ? std::optional(epoch) : std::nullopt;
}

Result<NotedUploads> ReadNote(const Files& files, const std::string& path) {
  const Result<std::string> text = ReadBegin(files, path, kMost);
  if (!text.ok()) return text.error();
  const json value = ParseJson(*text).value_or(json());
  NotedUploads note{lenient::Text(value, "output"), lenient::Text(value, "id"),
                    lenient::Text(value, "indexId")};
  if (note.output.empty() || note.id.empty() || note.index_id.empty()) {
    return Error{Code::kCorrupt, path + " is not what a coordinator has written: move it away"};
  }
  return note;
}

}  // namespace

Status NoteUploads(Files& files, const std::string& state_folder, uint32_t epoch,
                   const NotedUploads& uploads) {
  const std::string folder = FolderOfNotes(state_folder);
  if (Status made = files.MakeFolders(folder); !made.ok()) return made;
  const json note = {{"uploads", 1},
                     {"output", uploads.output},
                     {"id", uploads.id},
                     {"indexId", uploads.index_id}};
  return PublishFile(files, folder + "/" + NoteName(epoch),
                     note.dump(-1, ' ', true, json::error_handler_t::replace) + "\n");
}

Status EndNotedUploads(Files& files, const std::string& state_folder, uint32_t last,
                       store::WriteStore& store, const std::string& name) {
  const std::string folder = FolderOfNotes(state_folder);
  const Result<std::vector<std::string>> names = files.List(folder);
  if (!names.ok() && names.error().code == Code::kNotFound) return {};
  if (!names.ok()) return names.error();
  for (const std::string& file : *names) {
    const std::optional<uint32_t> epoch = EpochOfNote(file);
    if (!epoch || *epoch > last) continue;
    const std::string path = folder + "/" + file;
    const Result<NotedUploads> note = ReadNote(files, path);
    if (!note.ok()) return note.error();
    if (note->output != store.Location(name)) continue;
    Status ended = store.EndUpload(name, note->id);
    if (ended.ok()) ended = store.EndUpload(IndexNameOf(name), note->index_id);
    if (!ended.ok()) return ended;
    Status removed = files.Remove(path);
    if (!removed.ok() && removed.error().code != Code::kNotFound) return removed;
  }
  return {};
}

}  // namespace parallelrun::output
