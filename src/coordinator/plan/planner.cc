#include "coordinator/plan/planner.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/escape.h"
#include "coordinator/plan/csv_splitter.h"
#include "coordinator/plan/listing.h"

namespace parallelrun {
namespace {

// A chunk is about as large as all before it together, so that the first ones come at once, and
// bounded. Counted from the start of the job, so that a restart cuts the same chunks.
constexpr uint64_t kFirstFiles = 64;
constexpr uint64_t kMostFiles = 4096;
constexpr uint64_t kMostSlices = 256;
constexpr uint64_t kMostSliceBytes = 64 * 1024 * 1024;
// A record must fit a group of the ledger, and its Work a frame of the worker protocol: 64 MiB.
constexpr uint64_t kMostChunkBytes = 48 * 1024 * 1024;

std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::string Join(const std::string& folder, std::string_view name) {
  return (folder == "/" ? folder : folder + "/") + std::string(name);
}

CsvFormat FormatOf(const PlanInput& input) {
  return {input.delimiter, input.encoding, input.quoted_newlines};
}

std::string WorkFormat(const PlanInput& input) {
  const nlohmann::json format = {{"delimiter", input.delimiter}, {"encoding", input.encoding}};
  return format.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string_view WithoutLineEnd(std::string_view row) {
  while (!row.empty() && (row.back() == '\n' || row.back() == '\r')) row.remove_suffix(1);
  return row;
}

}  // namespace

PlanCursor CursorAfter(const PlanChunkRecord& chunk, const std::vector<PlanInput>& inputs) {
  PlanCursor cursor;
  cursor.input = chunk.input;
  cursor.next_batch = chunk.first + chunk.Batches();
  cursor.next_item = chunk.first_item + chunk.Items();
  if (const auto* files = std::get_if<FilesChunk>(&chunk.content)) {
    const size_t nul = files->names.rfind('\0');
    cursor.last_name = files->names.substr(nul == std::string_view::npos ? 0 : nul + 1);
    return cursor;
  }
  const auto& tabular = std::get<TabularChunk>(chunk.content);
  const std::string root = WithoutSlash(inputs[chunk.input].root);
  const size_t behind_root = root == "/" ? 1 : root.size() + 1;
  cursor.last_name = tabular.path == root ? tabular.path.substr(tabular.path.rfind('/') + 1)
                                          : tabular.path.substr(behind_root);
  if (!tabular.slices.empty()) {
    cursor.next_offset = tabular.slices.back().offset + tabular.slices.back().length;
  }
  return cursor;
}

struct Planner::State {
  using Chunk = Result<std::optional<std::string>>;

  std::vector<PlanInput> inputs;
  std::vector<std::string> forbidden;
  PlanCursor at;       // behind the last chunk
  bool found = false;  // the input at hand has a mini-batch
  bool begun = false;  // the input at hand was begun
  std::unique_ptr<Listing> listing;
  // tabular
  std::unique_ptr<CsvSplitter> splitter;  // of the file at.last_name, or none
  std::string header;                     // of that file
  std::string first_name;                 // of the first file with a header (kFirstFile)
  std::string first_header;

  const PlanInput& input() const { return inputs[at.input]; }
  std::string Place() const { return fmt::format("inputs[{}]", input().name); }

  ListingSettings Settings() const {
    return {input().name, input().root, input().pattern, input().exclude, forbidden};
  }

  Chunk Next() {
    for (; at.input < inputs.size(); LeaveInput()) {
      Chunk chunk = input().tabular ? NextSlices() : NextFiles();
      if (!chunk.ok()) return chunk;
      if (*chunk) {
        found = true;
        return chunk;
      }
      if (!found) return NothingFound();
    }
    return Chunk(std::nullopt);
  }

  void LeaveInput() {
    ++at.input;
    at.last_name.clear();
    at.next_offset = 0;
    found = begun = false;
    listing.reset();
    splitter.reset();
    first_name.clear();
    first_header.clear();
  }

  Error NothingFound() const {
    const std::string root = Printable(input().root, 4096);
    const std::string matched =
        input().pattern.empty() ? "" : fmt::format(" matches pattern {}", input().pattern);
    if (at.last_name.empty()) {
      return {Code::kInvalid, fmt::format("{}: no file{} below {}", Place(), matched, root)};
    }
    return {Code::kInvalid,
            fmt::format("{}: no file{} below {} holds a row", Place(), matched, root)};
  }

  Chunk NextFiles() {
    if (!begun) {
      listing = std::make_unique<Listing>(Settings(), at.last_name);
      begun = true;
    }
    const uint64_t per_batch =
        std::clamp<uint64_t>(input().batch_size, 1, std::numeric_limits<uint32_t>::max());
    const uint64_t most = std::clamp(at.next_item, kFirstFiles, kMostFiles);
    const uint64_t wanted = std::max(per_batch, most / per_batch * per_batch);

    FilesChunk files;
    files.files_per_batch = static_cast<uint32_t>(per_batch);
    std::string names;
    std::string name;
    while (files.stamps.size() < wanted) {
      const auto next = listing->Next();
      if (!next.ok()) return next.error();
      if (!*next) break;
      name.assign(**next);
      const auto stamp = listing->Stamp(name);
      if (!stamp.ok()) return stamp.error();
      if (!*stamp) continue;  // removed since it was listed
      if (!files.stamps.empty()) names += '\0';
      names += name;
      files.stamps.push_back(**stamp);
      if (names.size() + files.stamps.size() * sizeof(FileStamp) > kMostChunkBytes) {
        return Error{Code::kInvalid,
                     fmt::format("{}: a mini-batch of {} files is too large, the names of {} take "
                                 "48 MiB; lower miniBatchSize",
                                 Place(), per_batch, files.stamps.size())};
      }
    }
    if (files.stamps.empty()) return Chunk(std::nullopt);
    files.root = listing->folder();
    files.names = names;
    return Encoded(std::move(files), std::move(name));
  }

  Chunk NextSlices() {
    if (!begun) {
      const Status status = BeginTabular();
      if (!status.ok()) return status.error();
    }
    while (true) {
      if (!splitter) {
        const auto opened = OpenNextFile();
        if (!opened.ok()) return opened.error();
        if (!*opened) return Chunk(std::nullopt);
      }
      const uint64_t most = std::clamp<uint64_t>(at.next_batch, 1, kMostSlices);
      TabularChunk rows;
      for (uint64_t bytes = 0; rows.slices.size() < most && bytes < kMostSliceBytes;) {
        const auto slice = splitter->Next(input().batch_size);
        if (!slice.ok()) return slice.error().With(Place());
        if (!*slice) break;
        bytes += (*slice)->length;
        rows.slices.push_back(**slice);
      }
      if (rows.slices.empty()) {
        splitter.reset();
        continue;
      }
      const std::string path = Join(listing->folder(), at.last_name);
      const std::string format = WorkFormat(input());
      rows.path = path;
      rows.stamp = splitter->stamp();
      rows.header = header;
      rows.format = format;
      return Encoded(std::move(rows), at.last_name);
    }
  }

  template <typename Content>
  std::optional<std::string> Encoded(Content content, std::string last_name) {
    PlanChunkRecord chunk;
    chunk.first = at.next_batch;
    chunk.first_item = at.next_item;
    chunk.input = at.input;
    chunk.content = std::move(content);
    at.next_batch += chunk.Batches();
    at.next_item += chunk.Items();
    at.last_name = std::move(last_name);
    std::string record;
    EncodeRecord(std::move(chunk), record);
    return record;
  }

  Status BeginTabular() {
    const Status format = CheckCsvFormat(FormatOf(input()));
    if (!format.ok()) return format.error().With(Place());
    if (input().header == PlanHeader::kFirstFile) {
      const Status read = ReadFirstHeader();
      if (!read.ok()) return read;
    }
    listing = std::make_unique<Listing>(Settings(), at.last_name);
    begun = true;
    if (at.last_name.empty()) return {};
    // Go on in the file that the last chunk is from.
    const Status started = listing->Start();
    if (!started.ok()) return started;
    const Status opened = OpenFile(Join(listing->folder(), at.last_name));
    if (!opened.ok()) return opened.error().With(Place());
    splitter->Seek(at.next_offset);
    return {};
  }

  // kFirstFile: the header of the first file that is not empty. A listing of its own finds it, so
  // that a restart needs nothing but the cursor.
  Status ReadFirstHeader() {
    Listing files(Settings());
    while (first_header.empty()) {
      const auto name = files.Next();
      if (!name.ok()) return name.error();
      if (!*name) return {};
      first_name.assign(**name);
      auto file = CsvSplitter::Open(Join(files.folder(), first_name), FormatOf(input()));
      if (!file.ok()) return file.error().With(Place());
      auto row = (*file)->TakeHeader();
      if (!row.ok()) return row.error().With(Place());
      first_header = std::move(*row);
    }
    return {};
  }

  // False at the end of the listing.
  Result<bool> OpenNextFile() {
    while (!splitter) {
      const auto name = listing->Next();
      if (!name.ok()) return name.error();
      if (!*name) return false;
      at.last_name.assign(**name);
      const Status opened = OpenFile(Join(listing->folder(), at.last_name));
      if (opened.ok() || opened.error().code == Code::kNotFound) continue;  // removed since listed
      return opened.error().With(Place());
    }
    return true;
  }

  // Opens a file and leaves the splitter behind its header, if it has one.
  Status OpenFile(const std::string& path) {
    auto opened = CsvSplitter::Open(path, FormatOf(input()));
    if (!opened.ok()) return opened.error();
    header.clear();
    if (input().header != PlanHeader::kNone) {
      auto row = (*opened)->TakeHeader();
      if (!row.ok()) return row.error();
      const bool own = input().header == PlanHeader::kAllFiles || at.last_name == first_name ||
                       WithoutLineEnd(*row) == WithoutLineEnd(first_header);
      if (!own) (*opened)->Seek(0);
      header = own ? std::move(*row) : first_header;
    }
    splitter = std::move(*opened);
    return {};
  }
};

Planner::Planner(std::vector<PlanInput> inputs, std::vector<std::string> forbidden, PlanCursor from)
    : state_(std::make_unique<State>()) {
  state_->inputs = std::move(inputs);
  state_->forbidden = std::move(forbidden);
  state_->found = !from.last_name.empty();
  state_->at = std::move(from);
}

Planner::~Planner() = default;

Result<std::optional<std::string>> Planner::Next() { return state_->Next(); }

uint64_t Planner::batches() const { return state_->at.next_batch; }
uint64_t Planner::items() const { return state_->at.next_item; }

}  // namespace parallelrun
