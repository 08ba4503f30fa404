#include "output/store/side_upload_notes.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "base/hex.h"
#include "base/in_order.h"
#include "base/json.h"

namespace parallelrun::output {
namespace {

constexpr char kSideNotesFolder[] = "uploads";
constexpr std::string_view kSideNotePrefix = "side-";
constexpr size_t kFullNote = size_t{256} << 10;  // bytes, beyond which another one is begun
constexpr size_t kMostSideNote = size_t{4} << 20;
constexpr int kEndTries = 10;  // of an upload, some of whose parts arrive meanwhile
constexpr size_t kEndsAtOnce = 16;

struct SideNote {
  std::string store;
  uint64_t run_id = 0;
  std::vector<SideUploadNote> uploads;
};

std::string Dumped(const nlohmann::json& object) {
  return object.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

// Nothing: it is no such note.
std::optional<SideNote> ParseSideNote(std::string_view text) {
  SideNote note;
  bool head = true;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::optional<nlohmann::json> line = ParseObject(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (!line) return std::nullopt;
    if (std::exchange(head, false)) {
      const std::optional<uint64_t> run = ParseHex(lenient::Text(*line, "run"));
      note.store = lenient::Text(*line, "sideUploadsIn");
      if (!run || note.store.empty()) return std::nullopt;
      note.run_id = *run;
      continue;
    }
    note.uploads.push_back({lenient::Text(*line, "name"), lenient::Text(*line, "id")});
    if (note.uploads.back().name.empty() || note.uploads.back().id.empty()) return std::nullopt;
  }
  return head ? std::nullopt : std::optional(std::move(note));
}

// A part that was under way when it was ended may have stayed.
Status EndUntilGone(store::WriteStore& store, const SideUploadNote& upload) {
  for (int i = 0; i < kEndTries; ++i) {
    if (Status ended = store.EndUpload(upload.name, upload.id); !ended.ok()) return ended;
    const Result<bool> there = store.HasUpload(upload.name, upload.id);
    // Whose keys may not look has ended it all the same.
    if (!there.ok() && there.error().code == Code::kPermission) return {};
    if (!there.ok()) return there.error();
    if (!*there) return {};
  }
  return Error{Code::kUnavailable,
               store.Location(upload.name) + ": its upload does not end: is it still sent to?"};
}

}  // namespace

SideUploadNotes::SideUploadNotes(ledger::StateNotes& notes, std::string store, uint64_t run_id,
                                 uint32_t epoch)
    : notes_(notes), store_(std::move(store)), run_id_(run_id), epoch_(epoch) {}

std::string SideUploadNotes::Head() const {
  return Dumped({{"sideUploadsIn", store_}, {"run", fmt::format("{:016x}", run_id_)}});
}

Status SideUploadNotes::Add(const std::vector<SideUploadNote>& begun) {
  if (text_.size() >= kFullNote || text_.empty()) {
    ++number_;
    text_ = Head();
  }
  for (const SideUploadNote& one : begun) {
    text_ += Dumped({{"name", one.name}, {"id", one.id}});
  }
  return notes_.Write(
      fmt::format("{}/{}{:06}-{:06}.jsonl", kSideNotesFolder, kSideNotePrefix, epoch_, number_),
      text_);
}

Status EndSideUploads(ledger::StateNotes& notes, store::WriteStore& store,
                      const std::function<bool(uint64_t run_id)>& of_run,
                      const std::function<bool(const std::string& id)>& keeps) {
  const Result<std::vector<std::string>> files = notes.List(kSideNotesFolder);
  if (!files.ok()) return files.error();
  for (const std::string& file : *files) {
    if (!file.starts_with(kSideNotePrefix)) continue;
    const std::string path = std::string(kSideNotesFolder) + "/" + file;
    const Result<std::optional<std::string>> text = notes.Read(path, kMostSideNote);
    if (!text.ok()) return text.error();
    if (!*text) continue;
    const std::optional<SideNote> note = ParseSideNote(**text);
    if (!note) {
      return Error{Code::kCorrupt,
                   notes.Location(path) + " is not what a coordinator has written: move it away"};
    }
    if (note->store != store.Location("") || !of_run(note->run_id)) continue;
    std::vector<SideUploadNote> left;
    for (const SideUploadNote& upload : note->uploads) {
      if (!keeps(upload.id)) left.push_back(upload);
    }
    Status ended;
    MakeInOrder(
        Makers{"end uploads", kEndsAtOnce}, left.size(),
        [&](size_t i) { return EndUntilGone(store, left[i]); },
        [&](size_t, Status one) {
          ended = std::move(one);
          return ended.ok();
        });
    if (ended.ok()) ended = notes.Remove(path);
    if (!ended.ok()) return ended;
  }
  return {};
}

}  // namespace parallelrun::output
