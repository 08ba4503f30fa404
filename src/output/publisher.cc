#include "output/publisher.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "api/settings.h"
#include "job/record_codec.h"
#include "output/csv_join.h"
#include "output/listed_files.h"
#include "output/output_file.h"
#include "output/output_index.h"
#include "output/parquet/output_columns.h"
#include "output/row_format.h"
#include "parquet/row_group.h"
#include "plan/plan_store.h"

namespace parallelrun::output {
namespace {

constexpr size_t kOutputBlock = size_t{1} << 20;
constexpr uint64_t kSpareBytes = uint64_t{1} << 20;  // left free behind the output
constexpr uint64_t kIndexLine = 256;                 // about what one takes; room is not promised

// What a mini-batch's rows do not fit is told with its number.
Status Numbered(job::BatchId id, const Status& why) {
  if (why.error().code != Code::kInvalid) return why;
  return Error{Code::kInvalid, fmt::format("mini-batch {} {}", id, why.error().message)};
}

// Gathers what is small into blocks, so that small mini-batches do not cost a write each.
class Blocks {
 public:
  using Write = std::function<Status(std::string_view block)>;

  explicit Blocks(Write write) : write_(std::move(write)) {}
  Status Add(std::string_view bytes) {
    buffer_.append(bytes);
    return buffer_.size() < kOutputBlock ? Status() : Flush();
  }
  Status Flush() {
    Status written = write_(buffer_);
    size_ += buffer_.size();
    buffer_.clear();
    return written;
  }
  uint64_t size() const { return size_; }

 private:
  const Write write_;
  std::string buffer_;
  uint64_t size_ = 0;
};

// What of a part of a result's rows are rows, and no list of side files.
Result<std::string_view> RowsIn(const job::JobState& state, job::SideLine& side_files,
                                std::string_view bytes, bool first) {
  return state.stages_side_files() ? side_files.RowsIn(bytes, first) : bytes;
}

// The columns of the first mini-batch of the input that has rows; none where none has.
Result<std::vector<std::string>> FirstColumns(const ledger::Ledger& ledger,
                                              const job::JobState& state) {
  std::vector<job::JobState::RowsPart> parts;
  job::SideLine side_files;
  for (job::BatchId id = 0; id < state.batches().size(); ++id) {
    parts.clear();
    state.AppendRows(id, parts);
    std::string begin;
    for (const job::JobState::RowsPart& part : parts) {
      const Result<std::string> rows = ledger.Read(part.place);
      if (!rows.ok()) return rows.error();
      const auto own = RowsIn(state, side_files, *rows, part.first);
      if (!own.ok()) return own.error();
      if (part.first) begin.clear();
      begin += *own;
      const auto named = NamedColumns(begin);
      if (!named.ok()) return named.error();
      if (*named) return **named;
    }
  }
  return std::vector<std::string>();
}

// The columns that hold the rows of all mini-batches, of which the heads alone are read.
Result<std::vector<parquet::Column>> TypedColumns(const ledger::Ledger& ledger,
                                                  const job::JobState& state,
                                                  const std::vector<std::string>& named) {
  OutputColumns columns(named);
  RowReader rows(ledger);
  const Succession batches(state, RowOrder::kMiniBatch);
  job::SideLine side_files;
  const Status read = batches.Each([&](job::BatchId id, const auto& parts) {
    std::string begin;  // of a result whose head has not ended
    bool in_head = false;
    for (const job::JobState::RowsPart& part : parts) {
      if (part.first) begin.clear();
      bool first = part.first;
      in_head = in_head || first;
      if (!in_head) continue;
      const Status got = rows.ReadInPieces(part.place, [&](std::string_view piece) -> Result<bool> {
        const auto own = RowsIn(state, side_files, piece, std::exchange(first, false));
        if (!own.ok()) return own.error();
        begin += *own;
        const auto head = parquet::FindRowGroupHead(begin);
        if (!head.ok()) return head.error();
        if (!*head) return true;
        in_head = false;
        if (Status s = columns.Add(id, (*head)->columns); !s.ok()) return Numbered(id, s).error();
        return false;
      });
      if (!got.ok()) return got;
    }
    return Status();
  });
  if (!read.ok()) return read.error();
  return columns.All();
}

// Copies the rows of mini-batches from the ledger, and notes in the index where they went. Where
// the list of side files is the output, its lines are the rows.
class Copier {
 public:
  Copier(const ledger::Ledger& ledger, const job::JobState& state, bool list_alone,
         RowFormat& format, RowFormat::Put put, OutputIndex& index)
      : state_(state),
        list_alone_(list_alone),
        rows_(ledger),
        plan_(ledger),
        format_(format),
        put_(std::move(put)),
        index_(index) {}

  Status Copy(job::BatchId id, const std::vector<job::JobState::RowsPart>& parts) {
    index_.BeginMiniBatch(id);
    uint64_t count = 0;
    std::vector<job::SideFile> files;
    bool begins = false;  // a result, with the next of its rows
    for (const job::JobState::RowsPart& part : parts) {
      job::Place place = part.place;
      if (part.last) {
        place.offset -= job::kRowCountSize;
        place.length += job::kRowCountSize;
      }
      const Result<std::string_view> read = rows_.Read(place);
      if (!read.ok()) return read.error();
      if (part.last) count += Decoder(*read).U32();
      begins = begins || part.first;
      std::string_view rows = read->substr(part.last ? job::kRowCountSize : 0);
      if (state_.stages_side_files()) {
        if (const Status taken = TakeList(rows, part.first, files); !taken.ok()) return taken;
        if (rows.empty()) continue;
      }
      index_.AddRows(rows);
      const Status added = format_.Add(rows, std::exchange(begins, false), put_);
      if (!added.ok()) return Numbered(id, added);
      if (const auto group = format_.RowGroup()) index_.InRowGroup(*group);
    }
    if (list_alone_) {
      count = files.size();
      for (const job::SideFile& file : files) {
        if (const Status put = put_(SideFileLine(file, id)); !put.ok()) return put;
      }
      files.clear();
    }
    const Result<std::vector<plan::PlannedItem>> planned = plan_.Items(state_, id);
    if (!planned.ok()) return planned.error();
    return index_.EndMiniBatch(count, state_.batches()[id].items, *planned, files);
  }

 private:
  // Off the front of `rows`.
  Status TakeList(std::string_view& rows, bool first, std::vector<job::SideFile>& files) {
    const bool had = !first && side_files_.line();
    const Result<std::string_view> own = side_files_.RowsIn(rows, first);
    if (!own.ok()) return own.error();
    rows = *own;
    if (had || !side_files_.line()) return {};
    Result<job::SideList> list = job::ParseSideList(*side_files_.line());
    if (!list.ok()) return list.error();
    std::move(list->files.begin(), list->files.end(), std::back_inserter(files));
    return {};
  }

  const job::JobState& state_;
  const bool list_alone_;
  RowReader rows_;
  plan::PlanStore plan_;
  RowFormat& format_;
  const RowFormat::Put put_;
  OutputIndex& index_;
  job::SideLine side_files_;
};

// What is forbidden now is so for each coordinator that comes after this one: a person is to hear
// it.
Status Forbidden(const Status& why) {
  if (why.ok() || why.error().code != Code::kPermission) return why;
  return Error{Code::kInvalid, why.error().message +
                                   "; side files are moved by the coordinator, which must run as "
                                   "the user of the nodes"};
}

// All of them, or none as far as anybody can know before.
Status MoveSideFiles(const StagedOutput& staged, const ledger::Ledger& ledger,
                     const job::JobState& state, const Replaceable& replaceable) {
  if (staged.stored) {
    return PublishSideFiles(*staged.stored, ledger, state, replaceable, staged.newest);
  }
  if (state.side_names().empty()) return {};
  Result<std::unique_ptr<StagedFiles>> files = StagedFiles::Open(*staged.files, staged.places);
  if (!files.ok()) return files.error();
  const bool may_replace = replaceable.whatever || replaceable.last;
  const Status checked =
      EachSideList(ledger, state, [&](job::BatchId id, const job::SideList& list) {
        return (*files)->Check(id, list, may_replace);
      });
  if (!checked.ok()) return Forbidden(checked);
  const Status moved =
      EachSideList(ledger, state, [&](job::BatchId, const job::SideList& list) -> Status {
        if (list.files.empty()) return {};
        if (Status newest = staged.newest(); !newest.ok()) return newest;
        return (*files)->Move(list);
      });
  return moved.ok() ? (*files)->Sync() : Forbidden(moved);
}

// Side files of the output that is replaced are none of this one's, but for those of the same name.
// Its list is still there: who is interrupted does it again.
Status RemoveReplaced(const StagedOutput& staged, const std::string& output,
                      const job::JobState& state, const Replaceable& replaceable) {
  if (staged.stored) return {};  // theirs stay
  if (!replaceable.whatever && !replaceable.last) return {};
  if (Status newest = staged.newest(); !newest.ok()) return newest;
  const Result<uint64_t> removed =
      RemoveListedFiles(*staged.files, output,
                        [&state](const std::string& name) { return state.side_names().Has(name); });
  // A list that cannot be read is that of an output which goes all the same.
  if (!removed.ok() && removed.error().code != Code::kInvalid) return removed.error();
  return {};
}

Result<std::unique_ptr<RowFormat>> FormatOf(const ledger::Ledger& ledger,
                                            const job::JobState& state,
                                            const PublishOptions& options) {
  RowHeads heads{state.header(), options.columns, {}};
  if (options.format == api::OutputFormat::kCsv && heads.columns.empty()) {
    Result<std::vector<std::string>> columns = FirstColumns(ledger, state);
    if (!columns.ok()) return columns.error();
    heads.columns = std::move(*columns);
  }
  if (options.format == api::OutputFormat::kParquet) {
    Result<std::vector<parquet::Column>> columns = TypedColumns(ledger, state, options.columns);
    if (!columns.ok()) return columns.error();
    heads.typed = std::move(*columns);
  }
  return MakeRowFormat(options.format, std::move(heads));
}

}  // namespace

Result<Publication> PublishOutput(Sink& sink, const ledger::Ledger& ledger,
                                  const job::JobState& state, const PublishOptions& options) {
  const bool list_alone = options.staged && options.staged->list_alone;
  const Result<std::unique_ptr<RowFormat>> format =
      list_alone ? MakeRowFormat(api::OutputFormat::kJsonl, {}) : FormatOf(ledger, state, options);
  if (!format.ok()) return format.error();
  const Replaceable replaceable{state.settings() && state.settings()->may_replace,
                                state.last_published()};
  const Succession batches(state, options.order);
  RowsAhead ahead{.rows = state.counts().rows};
  uint64_t total = state.header().size();
  const Status added_up = batches.Each([&total, &ahead](job::BatchId, const auto& parts) {
    for (const job::JobState::RowsPart& part : parts) {
      ahead.bytes += part.place.length;
      if (part.first) ++ahead.results;
    }
    total += kIndexLine;
    return Status();
  });
  if (!added_up.ok()) return added_up.error();
  total += ahead.bytes + (*format)->Around(ahead);
  const Result<std::optional<uint64_t>> room = sink.Room();
  if (!room.ok()) return room.error();
  if (*room && **room < total + kSpareBytes) {
    return Error{Code::kNoSpace, fmt::format("{}: {} bytes are free, the output needs {}",
                                             sink.Location(), **room, total)};
  }

  if (options.staged) {
    const Status moved = MoveSideFiles(*options.staged, ledger, state, replaceable);
    if (!moved.ok()) return moved.error();
    if (const Status s = RemoveReplaced(*options.staged, sink.Location(), state, replaceable);
        !s.ok()) {
      return s.error();
    }
  }
  const Result<std::unique_ptr<Writer>> begun = sink.Begin(total);
  if (!begun.ok()) return begun.error();
  Writer& writer = **begun;
  Sha256 digest;
  Blocks rows([&](std::string_view block) {
    digest.Add(block);
    return writer.Append(block);
  });
  Blocks index_lines([&writer](std::string_view block) { return writer.AppendIndex(block); });
  const bool in_row_groups = options.format == api::OutputFormat::kParquet && !list_alone;
  OutputIndex index([&index_lines](std::string_view line) { return index_lines.Add(line); },
                    in_row_groups ? OutputIndex::Rows::kInRowGroups : OutputIndex::Rows::kApart);
  uint64_t lines = 0;
  const bool text = options.format == api::OutputFormat::kText && !list_alone;
  const RowFormat::Put put = [&](std::string_view bytes) {
    if (text) lines += static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
    index.Add(bytes);
    return rows.Add(bytes);
  };
  const std::string location = sink.Location();
  const std::string name = location.substr(location.rfind('/') + 1);
  const std::string trial = state.settings() ? api::TrialOf(state.settings()->plan_settings) : "";
  if (const Status s = index.Begin(name, trial); !s.ok()) return s.error();
  if (const Status s = (*format)->Begin(put); !s.ok()) return s.error();
  lines = 0;
  Copier copier(ledger, state, list_alone, **format, put, index);
  const Status copied = batches.Each(
      [&copier](job::BatchId id, const auto& parts) { return copier.Copy(id, parts); });
  if (!copied.ok()) return copied.error();
  if (const Status s = (*format)->End(put); !s.ok()) return s.error();
  if (const Status s = rows.Flush(); !s.ok()) return s.error();

  const uint64_t count = list_alone ? index.rows() : state.counts().rows;
  const job::Published written{sink.Location(), rows.size(), count, digest.Finish()};
  if (const Status s = index.End(written); !s.ok()) return s.error();
  if (const Status s = index_lines.Flush(); !s.ok()) return s.error();
  Result<Commit> commit = writer.End(written, replaceable);
  if (!commit.ok()) return commit.error();
  if (commit->end == Committed::kStale) return Error{Code::kStale, std::move(commit->why)};
  if (commit->end == Committed::kForeign) return Error{Code::kExists, std::move(commit->why)};
  return Publication{written, std::move(commit->set_aside), lines};
}

}  // namespace parallelrun::output
