#include "output/store/upload_notes.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "output/output_index.h"

namespace parallelrun::output {
namespace {

using nlohmann::json;

constexpr size_t kMost = size_t{64} << 10;
constexpr std::string_view kSuffix = ".json";
constexpr char kNotesFolder[] = "uploads";

std::string NoteName(uint32_t epoch) { return fmt::format("{:06}{}", epoch, kSuffix); }

// Nothing for any other name, however like one it looks.
std::optional<uint32_t> EpochOfNote(const std::string& name) {
  uint32_t epoch = 0;
  std::from_chars(name.data(), name.data() + name.size(), epoch);
  return NoteName(epoch) == name ? std::optional(epoch) : std::nullopt;
}

std::string PathOfNote(const std::string& file) { return std::string(kNotesFolder) + "/" + file; }

// Nothing where it is gone.
Result<std::optional<NotedUploads>> ReadNote(ledger::StateNotes& notes, const std::string& name) {
  const Result<std::optional<std::string>> text = notes.Read(name, kMost);
  if (!text.ok()) return text.error();
  if (!*text) return std::optional<NotedUploads>();
  const json value = ParseJson(**text).value_or(json());
  NotedUploads note{lenient::Text(value, "output"), lenient::Text(value, "id"),
                    lenient::Text(value, "indexId")};
  if (note.output.empty() || note.id.empty() || note.index_id.empty()) {
    return Error{Code::kCorrupt,
                 notes.Location(name) + " is not what a coordinator has written: move it away"};
  }
  return std::optional(std::move(note));
}

}  // namespace

Status NoteUploads(ledger::StateNotes& notes, uint32_t epoch, const NotedUploads& uploads) {
  const json note = {{"uploads", 1},
                     {"output", uploads.output},
                     {"id", uploads.id},
                     {"indexId", uploads.index_id}};
  return notes.Write(PathOfNote(NoteName(epoch)),
                     note.dump(-1, ' ', true, json::error_handler_t::replace) + "\n");
}

Status EndNotedUploads(ledger::StateNotes& notes, uint32_t last, store::WriteStore& store,
                       const std::string& name) {
  const Result<std::vector<std::string>> files = notes.List(kNotesFolder);
  if (!files.ok()) return files.error();
  for (const std::string& file : *files) {
    const std::optional<uint32_t> epoch = EpochOfNote(file);
    if (!epoch || *epoch > last) continue;
    const std::string path = PathOfNote(file);
    const Result<std::optional<NotedUploads>> note = ReadNote(notes, path);
    if (!note.ok()) return note.error();
    if (!*note || (*note)->output != store.Location(name)) continue;
    Status ended = store.EndUpload(name, (*note)->id);
    if (ended.ok()) ended = store.EndUpload(IndexNameOf(name), (*note)->index_id);
    if (ended.ok()) ended = notes.Remove(path);
    if (!ended.ok()) return ended;
  }
  return {};
}

}  // namespace parallelrun::output
