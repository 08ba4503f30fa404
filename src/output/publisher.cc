#include "output/publisher.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "api/settings.h"
#include "job/record_codec.h"
#include "output/csv_join.h"
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
constexpr uint32_t kHeadPiece = uint32_t{64} << 10;
constexpr uint64_t kIndexLine = 256;  // about what one takes; room is not promised

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

// Reads rows of the ledger, neighbours in one read: in mini-batch order most rows lie close
// together.
class RowReader {
 public:
  explicit RowReader(const ledger::Ledger& ledger) : ledger_(ledger) {}
  Result<std::string_view> Read(const job::Place& place) {
    const bool inside = place.epoch == window_.epoch && place.offset >= window_.offset &&
                        place.offset + place.length <= window_.offset + bytes_.size();
    if (!inside) {
      const auto length = std::max<size_t>(place.length, std::min(kOutputBlock, size_t{64} << 10));
      // A window near the end of a log is cut short by the ledger; only our rows must be there.
      Result<std::string> read =
          ledger_.Read({place.epoch, place.offset, static_cast<uint32_t>(length)});
      if (!read.ok() && length > place.length) read = ledger_.Read(place);
      if (!read.ok()) return read.error();
      bytes_ = std::move(*read);
      window_ = place;
      if (bytes_.size() < place.length) {
        return Error{Code::kCorrupt,
                     fmt::format("the ledger of epoch {} ends within rows at offset {}",
                                 place.epoch, place.offset)};
      }
    }
    return std::string_view(bytes_).substr(place.offset - window_.offset, place.length);
  }

 private:
  const ledger::Ledger& ledger_;
  job::Place window_;
  std::string bytes_;
};

// The succeeded mini-batches in the order of the output. Memory: none in their own order, else 4
// bytes each.
class Succession {
 public:
  Succession(const job::JobState& state, RowOrder order) : state_(state) {
    if (order == RowOrder::kMiniBatch) return;
    sorted_.emplace().reserve(state.counts().succeeded);
    for (uint32_t id = 0; id < state.batches().size(); ++id) {
      if (Succeeded(id)) sorted_->push_back(id);
    }
    std::sort(sorted_->begin(), sorted_->end(), [&state](uint32_t a, uint32_t b) {
      const job::Place x = state.batches().RowsOf(a);
      const job::Place y = state.batches().RowsOf(b);
      return std::tie(x.epoch, x.offset) < std::tie(y.epoch, y.offset);
    });
  }

  // Calls `visit(id, parts)` with the rows of each, up to the first error; it may have none.
  template <typename Visit>
  Status Each(Visit visit) const {
    const size_t count = sorted_ ? sorted_->size() : state_.batches().size();
    std::vector<job::JobState::RowsPart> parts;  // few
    for (size_t i = 0; i < count; ++i) {
      const job::BatchId id = sorted_ ? (*sorted_)[i] : i;
      if (!Succeeded(id)) continue;
      parts.clear();
      state_.AppendRows(id, parts);
      if (Status visited = visit(id, parts); !visited.ok()) return visited;
    }
    return {};
  }

 private:
  bool Succeeded(job::BatchId id) const {
    return state_.StateOf(id) == job::MiniBatch::State::kSucceeded;
  }

  const job::JobState& state_;
  std::optional<std::vector<uint32_t>> sorted_;  // ids of whole mini-batches: below 2³²
};

// The columns of the first mini-batch of the input that has rows; none where none has.
Result<std::vector<std::string>> FirstColumns(const ledger::Ledger& ledger,
                                              const job::JobState& state) {
  std::vector<job::JobState::RowsPart> parts;
  for (job::BatchId id = 0; id < state.batches().size() && parts.empty(); ++id) {
    state.AppendRows(id, parts);
  }
  std::string begin;
  for (const job::JobState::RowsPart& part : parts) {
    const Result<std::string> rows = ledger.Read(part.place);
    if (!rows.ok()) return rows.error();
    begin += *rows;
    const auto named = NamedColumns(begin);
    if (!named.ok()) return named.error();
    if (*named) return **named;
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
  const Status read = batches.Each([&](job::BatchId id, const auto& parts) {
    std::string begin;  // of a result whose head has not ended
    bool in_head = false;
    for (const job::JobState::RowsPart& part : parts) {
      if (part.first) begin.clear();
      in_head = in_head || part.first;
      job::Place place = part.place;
      for (uint32_t left = part.place.length; in_head && left > 0; left -= place.length) {
        place.length = std::min(left, kHeadPiece);
        const Result<std::string_view> piece = rows.Read(place);
        if (!piece.ok()) return Status(piece.error());
        begin += *piece;
        place.offset += place.length;
        const auto head = parquet::FindRowGroupHead(begin);
        if (!head.ok()) return Status(head.error());
        if (!*head) continue;
        in_head = false;
        if (const Status s = columns.Add(id, (*head)->columns); !s.ok()) return Numbered(id, s);
      }
    }
    return Status();
  });
  if (!read.ok()) return read.error();
  return columns.All();
}

// Copies the rows of mini-batches from the ledger, and notes in the index where they went.
class Copier {
 public:
  Copier(const ledger::Ledger& ledger, const job::JobState& state, RowFormat& format,
         RowFormat::Put put, OutputIndex& index)
      : state_(state),
        rows_(ledger),
        plan_(ledger),
        format_(format),
        put_(std::move(put)),
        index_(index) {}

  Status Copy(job::BatchId id, const std::vector<job::JobState::RowsPart>& parts) {
    index_.BeginMiniBatch(id);
    uint64_t count = 0;
    for (const job::JobState::RowsPart& part : parts) {
      job::Place place = part.place;
      if (part.last) {
        place.offset -= job::kRowCountSize;
        place.length += job::kRowCountSize;
      }
      const Result<std::string_view> read = rows_.Read(place);
      if (!read.ok()) return read.error();
      if (part.last) count += Decoder(*read).U32();
      const Status added =
          format_.Add(read->substr(part.last ? job::kRowCountSize : 0), part.first, put_);
      if (!added.ok()) return Numbered(id, added);
    }
    const Result<std::vector<plan::PlannedItem>> planned = plan_.Items(state_, id);
    if (!planned.ok()) return planned.error();
    return index_.EndMiniBatch(count, state_.batches()[id].items, *planned);
  }

 private:
  const job::JobState& state_;
  RowReader rows_;
  plan::PlanStore plan_;
  RowFormat& format_;
  const RowFormat::Put put_;
  OutputIndex& index_;
};

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
  const Result<std::unique_ptr<RowFormat>> format = FormatOf(ledger, state, options);
  if (!format.ok()) return format.error();
  const Succession batches(state, options.order);
  uint64_t total = state.header().size();
  uint64_t results = 0;
  const Status added_up = batches.Each([&total, &results](job::BatchId, const auto& parts) {
    for (const job::JobState::RowsPart& part : parts) {
      total += part.place.length;
      if (part.first) ++results;
    }
    total += kIndexLine;
    return Status();
  });
  if (!added_up.ok()) return added_up.error();
  total += (*format)->Around(results);
  const Result<std::optional<uint64_t>> room = sink.Room();
  if (!room.ok()) return room.error();
  if (*room && **room < total + kSpareBytes) {
    return Error{Code::kNoSpace, fmt::format("{}: {} bytes are free, the output needs {}",
                                             sink.Location(), **room, total)};
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
  OutputIndex index([&index_lines](std::string_view line) { return index_lines.Add(line); });
  uint64_t lines = 0;
  const bool text = options.format == api::OutputFormat::kText;
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
  Copier copier(ledger, state, **format, put, index);
  const Status copied = batches.Each(
      [&copier](job::BatchId id, const auto& parts) { return copier.Copy(id, parts); });
  if (!copied.ok()) return copied.error();
  if (const Status s = (*format)->End(put); !s.ok()) return s.error();
  if (const Status s = rows.Flush(); !s.ok()) return s.error();

  const job::Published written{sink.Location(), rows.size(), state.counts().rows, digest.Finish()};
  if (const Status s = index.End(written); !s.ok()) return s.error();
  if (const Status s = index_lines.Flush(); !s.ok()) return s.error();
  const Replaceable replaceable{state.settings() && state.settings()->may_replace,
                                state.last_published()};
  Result<Commit> commit = writer.End(written, replaceable);
  if (!commit.ok()) return commit.error();
  if (commit->end == Committed::kStale) return Error{Code::kStale, std::move(commit->why)};
  if (commit->end == Committed::kForeign) return Error{Code::kExists, std::move(commit->why)};
  return Publication{written, std::move(commit->set_aside), lines};
}

}  // namespace parallelrun::output
