#include "plan/planner.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "api/enums.h"
#include "base/escape.h"
#include "job/record_codec.h"
#include "plan/columns/decide_parquet.h"
#include "plan/columns/decide_types.h"
#include "plan/manifest_pin.h"
#include "plan/manifest_store.h"
#include "plan/row_files.h"
#include "plan/source.h"
#include "plan/table_logs.h"

namespace parallelrun::plan {
namespace {

using Chunk = Result<std::optional<std::string>>;

constexpr uint64_t kFirstFiles = 64;

std::string_view LastName(std::string_view names) {
  const size_t nul = names.rfind('\0');
  return names.substr(nul == std::string_view::npos ? 0 : nul + 1);
}

void GoBehind(const job::FilesChunk& chunk, const PlanInput&, PlanCursor& cursor) {
  cursor.last_name = LastName(chunk.names);
}

void GoBehind(const job::TabularChunk& chunk, const PlanInput& input, PlanCursor& cursor) {
  cursor.last_name = NameOf(chunk.path, input);
  // Of a compressed file there is nothing to go on with, whatever becomes of it.
  cursor.next_offset = IsCompressed(chunk.format)
                           ? chunk.size
                           : chunk.slices.back().offset + chunk.slices.back().length;
  cursor.found = {chunk.size, store::Version(std::string(chunk.version))};
  cursor.header = chunk.header;
}

void GoBehind(const job::RankChunk&, const PlanInput&, PlanCursor&) {}  // its ids are its ranks

void GoBehind(const job::FileGroupsChunk& chunk, const PlanInput&, PlanCursor& cursor) {
  cursor.last_name = LastName(chunk.groups.back().names);
  cursor.listing = chunk.place.listing;
  cursor.next_group = chunk.place.next_group;
}

void GoBehind(const job::TableGroupsChunk& chunk, const PlanInput& input, PlanCursor& cursor) {
  cursor.last_name = NameOf(chunk.groups.back().slices.back().path, input);
  cursor.header = chunk.groups.back().slices.back().header;
  cursor.listing = chunk.place.listing;
  cursor.next_group = chunk.place.next_group;
}

// Mini-batches without input, whose ids are their ranks: the only input there is.
class RankSource : public PlanSource {
 public:
  explicit RankSource(const PlanInput& input) : input_(input) {}

  Result<std::optional<std::string>> Next(PlanCursor& at) override {
    const uint64_t end = std::min(input_.batch_size, input_.most_items);
    if (at.next_batch >= end) return Chunk(std::nullopt);
    const uint64_t left = end - at.next_batch;
    return EncodeChunk(
        input_,
        job::RankChunk{static_cast<uint32_t>(std::min<uint64_t>(left, job::RankChunk::kMost))}, at);
  }

 private:
  const PlanInput& input_;
};

std::unique_ptr<PlanSource> MakeSource(const PlanInput& input, store::Store& store) {
  if (input.kind == PlanKind::kRanks) return std::make_unique<RankSource>(input);
  if (!input.partition_keys.empty()) return MakeGroupSource(input, store);
  if (input.kind == PlanKind::kFiles) return MakeFileSource(input, store);
  return MakeRowSource(input, store);
}

}  // namespace

uint64_t FilesWanted(const PlanCursor& at) {
  return std::clamp(at.next_item, kFirstFiles, kMostFiles);
}

uint64_t SlicesWanted(const PlanCursor& at) {
  return std::clamp<uint64_t>(at.next_batch, 1, kMostSlices);
}

std::vector<std::string_view> ViewsOf(const std::vector<store::Version>& versions) {
  std::vector<std::string_view> views;
  views.reserve(versions.size());
  for (const store::Version& version : versions) views.push_back(version.bytes());
  return views;
}

DataNames DataNamesOf(PlanKind kind) {
  if (kind == PlanKind::kParquet) return DataNames::kAsSpark;
  const bool text = kind == PlanKind::kDelimited || kind == PlanKind::kJsonLines;
  return text ? DataNames::kNoMarks : DataNames::kAll;
}

std::string PlaceOf(const PlanInput& input) { return fmt::format("inputs[{}]", input.name); }

std::string_view LastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view WithoutSlash(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

std::string JoinPath(const std::string& folder, std::string_view name) {
  return (folder == "/" ? folder : folder + "/") + std::string(name);
}

std::string_view NameOf(std::string_view path, const PlanInput& input) {
  const std::string_view root = WithoutSlash(input.root);
  if (path == root) return LastPart(path);
  return path.substr(root == "/" ? 1 : root.size() + 1);
}

PlanCursor CursorAfter(const job::PlanChunkRecord& chunk, const std::vector<PlanInput>& inputs) {
  PlanCursor cursor;
  cursor.input = chunk.input;
  cursor.next_batch = chunk.first + chunk.Batches();
  cursor.next_item = chunk.first_item + chunk.Items();
  std::visit([&](const auto& c) { GoBehind(c, inputs[chunk.input], cursor); }, chunk.content);
  return cursor;
}

struct Planner::State {
  std::vector<PlanInput> inputs;
  OpenStore open;
  PlanCursor at;                             // behind the last chunk
  bool found = false;                        // the input at hand has a mini-batch
  std::unique_ptr<store::Store> store = {};  // of the input at hand
  std::unique_ptr<PlanSource> source = {};
  std::vector<std::string> notes = {};

  Result<std::optional<std::string>> Next() {
    for (; at.input < inputs.size(); LeaveInput()) {
      PlanInput& input = inputs[at.input];
      if (at.next_item >= input.most_items) break;
      if (input.only && input.only->empty()) continue;
      if (!store) {
        if (!at.last_name.empty()) {  // the cursor stands within it
          input.manifest.items_planned = at.next_item - input.manifest.items_before;
        }
        store = open(input);
      }
      // Where chunks were planned without them, all mini-batches are read so.
      if (!source && input.decide_types && !found) {
        auto types = TakeTypes(input);
        if (!types.ok() || *types) return types;
      }
      if (!source) source = MakeSource(input, *store);
      auto chunk = source->Next(at);
      if (!chunk.ok()) return chunk;
      if (*chunk) {
        found = true;
        return chunk;
      }
      // What it means is planned, by an input before it.
      if (found || source->left_out().of_others()) continue;
      if (const Status empty = MayBeEmpty(input); !empty.ok()) return empty.error();
      TellEmpty(input);
    }
    if (at.next_batch == 0) {
      if (const Status replaces = MayReplace(); !replaces.ok()) return replaces.error();
    }
    return Result<std::optional<std::string>>(std::nullopt);
  }

  // A record of the types of the input's columns, or of its manifest; nullopt where there is none.
  Result<std::optional<std::string>> TakeTypes(PlanInput& input) {
    input.decide_types = false;
    std::string record;
    if (!input.manifest.path.empty()) {
      const auto manifest = store->Stat(kManifestItself);
      if (!manifest.ok()) return manifest.error().With(PlaceOf(input));
      if (!*manifest) return Chunk(std::nullopt);
      input.manifest.planned = (*manifest)->version;
      input.manifest.items_before = at.next_item;
      store = open(input);  // one that asks for this manifest
      const std::string pin = PinOf({input.manifest.planned, at.next_item});
      job::EncodeRecord(job::TypesRecord{at.input, pin}, record);
      return Chunk(std::move(record));
    }
    if (input.kind == PlanKind::kParquet) {
      const auto parquet = DecideParquetTypes(input, *store);
      if (!parquet.ok()) return parquet.error();
      if (parquet->empty()) return Chunk(std::nullopt);
      const std::string types = parquet->Json();
      job::EncodeRecord(job::TypesRecord{at.input, types}, record);
      return Chunk(std::move(record));
    }
    const auto table = DecideTypes(input, *store);
    if (!table.ok()) return table.error();
    if (!*table) return Chunk(std::nullopt);
    for (const TypedColumn& column : (*table)->columns) input.columns.push_back(column.name);
    const std::string types = ToJson(**table);
    job::EncodeRecord(job::TypesRecord{at.input, types}, record);
    return Chunk(std::move(record));
  }

  void LeaveInput() {
    const PlanInput& input = inputs[at.input];
    const LeftOut left_out = source ? source->left_out() : LeftOut();
    for (const std::string& line : left_out.Lines(DataNamesOf(input.kind))) {
      notes.push_back(PlaceOf(input) + ": " + line);
    }
    PlanCursor next;
    next.input = at.input + 1;
    next.next_batch = at.next_batch;
    next.next_item = at.next_item;
    at = std::move(next);
    found = false;
    source.reset();
    store.reset();
  }

  // --- inputs without an item

  // Only what is there may be empty without more words: a prefix that was misspelt lists nothing
  // either, and so does a pattern, and yesterday's output would be replaced by nothing.
  Status MayBeEmpty(const PlanInput& input) const {
    if (input.allow_empty == api::AllowEmpty::kMissing) return {};
    const Error nothing = NothingFound(input);
    if (input.allow_empty == api::AllowEmpty::kNever) {
      return Error{nothing.code, nothing.message + HowToAllow(input)};
    }
    if (!at.last_name.empty()) return {};
    if (input.pattern.empty()) {
      const Result<bool> there = store->IsThere();
      if (!there.ok()) return there.error().With(PlaceOf(input));
      if (*there) return {};
    }
    return Error{nothing.code, nothing.message +
                                   "; allowEmpty: Existing is for what is there: write Missing "
                                   "where nothing may be"};
  }

  Status MayReplace() const {
    for (const PlanInput& input : inputs) {
      if (!input.replaces || input.allow_empty != api::AllowEmpty::kExisting) continue;
      return Error{Code::kInvalid,
                   PlaceOf(input) +
                       ": it is empty, and the output of no row would replace one that has "
                       "something in it: correct where the input lies, or write allowEmpty: "
                       "Missing where that is meant"};
    }
    return {};
  }

  void TellEmpty(const PlanInput& input) {
    const bool listed = input.manifest.path.empty();
    notes.push_back(fmt::format("{}: EMPTY: no item {} {}, which allowEmpty: {} permits",
                                PlaceOf(input), listed ? "below" : "in",
                                Printable(listed ? input.root : input.manifest.path, 4096),
                                api::EnumWord(input.allow_empty)));
  }

  // Where files are there, and hold no row: the table of an empty day.
  std::string HowToAllow(const PlanInput& input) const {
    if (at.last_name.empty()) return "";
    return fmt::format(
        "; where it may be empty, write allowEmpty: {} beside its name (without a job file: "
        "--allow-empty{})",
        input.replaces ? "Missing" : "Existing", input.replaces ? "=Missing" : "");
  }

  Error NothingFound(const PlanInput& input) const {
    if (!input.manifest.path.empty()) {
      return {Code::kInvalid,
              fmt::format("{}: the manifest {} names no file: write one path a line, or correct "
                          "manifest.path",
                          PlaceOf(input), Printable(input.manifest.path, 4096))};
    }
    const std::string matched =
        input.pattern.empty() ? "" : fmt::format(" matches pattern {}", input.pattern);
    const std::string left_out =
        fmt::format("{}", fmt::join(source->left_out().Lines(DataNamesOf(input.kind)), "; "));
    return {Code::kInvalid,
            fmt::format("{}: no file{} below {}{}: {}{}", PlaceOf(input), matched,
                        Printable(input.root, 4096), at.last_name.empty() ? "" : " holds a row",
                        input.pattern.empty() ? "put files there, or correct where the input lies"
                                              : "put files there, or correct the pattern",
                        left_out.empty() ? "" : " (" + left_out + ")") +
                (input.is_prefix ? "; one object of that name is written without the / at the end "
                                   "of path"
                                 : "")};
  }
};

Planner::Planner(std::vector<PlanInput> inputs, OpenStore open, PlanCursor from)
    : state_(new State{std::move(inputs), RefusingTableLogs(std::move(open)), std::move(from)}) {
  state_->found = state_->at.next_batch > 0;  // a cursor stands behind a chunk of its input
}

Planner::~Planner() = default;

Result<std::optional<std::string>> Planner::Next() { return state_->Next(); }

std::vector<std::string> Planner::TakeNotes() { return std::exchange(state_->notes, {}); }

uint64_t Planner::batches() const { return state_->at.next_batch; }
uint64_t Planner::items() const { return state_->at.next_item; }

void TakeOnly(const api::Selection& selection, std::vector<PlanInput>& inputs) {
  for (PlanInput& input : inputs) {
    input.most_items = selection.limit.value_or(kAllItems);
    if (!selection.files) continue;
    const auto chosen = selection.files->find(input.name);
    input.only.emplace();
    if (chosen != selection.files->end()) input.only = chosen->second;
  }
}

}  // namespace parallelrun::plan
