#include "coordinator/publisher.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/output_file.h"
#include "coordinator/row_format.h"

namespace parallelrun {
namespace {

constexpr size_t kBlock = size_t{1} << 20;
constexpr uint64_t kSpareBytes = uint64_t{1} << 20;  // left free behind the output

// Gathers rows into blocks, so that small mini-batches do not cost a write each.
class BlockWriter {
 public:
  explicit BlockWriter(Writer& writer) : writer_(writer) {}
  Status Add(std::string_view rows) {
    buffer_.append(rows);
    return buffer_.size() < kBlock ? Status() : Flush();
  }
  Status Flush() {
    digest_.Add(buffer_);
    const Status written = writer_.Append(buffer_);
    size_ += buffer_.size();
    buffer_.clear();
    return written;
  }
  uint64_t size() const { return size_; }
  Sha256::Digest Digest() { return digest_.Finish(); }

 private:
  Writer& writer_;
  Sha256 digest_;
  std::string buffer_;
  uint64_t size_ = 0;
};

// Reads rows of the ledger, neighbours in one read: in mini-batch order most rows lie close
// together.
class RowReader {
 public:
  explicit RowReader(const Ledger& ledger) : ledger_(ledger) {}
  Result<std::string_view> Read(const Place& place) {
    const bool inside = place.epoch == window_.epoch && place.offset >= window_.offset &&
                        place.offset + place.length <= window_.offset + bytes_.size();
    if (!inside) {
      const auto length = std::max<size_t>(place.length, std::min(kBlock, size_t{64} << 10));
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
  const Ledger& ledger_;
  Place window_;
  std::string bytes_;
};

// The succeeded mini-batches in the order of the output. Memory: none in their own order, else 4
// bytes each.
class Succession {
 public:
  Succession(const JobState& state, RowOrder order) : state_(state) {
    if (order == RowOrder::kMiniBatch) return;
    sorted_.emplace().reserve(state.counts().succeeded);
    for (uint32_t id = 0; id < state.batches().size(); ++id) {
      if (Succeeded(id)) sorted_->push_back(id);
    }
    std::sort(sorted_->begin(), sorted_->end(), [&state](uint32_t a, uint32_t b) {
      const Place x = state.batches().RowsOf(a);
      const Place y = state.batches().RowsOf(b);
      return std::tie(x.epoch, x.offset) < std::tie(y.epoch, y.offset);
    });
  }

  // Calls `visit(place)` for the rows of each, up to the first error.
  template <typename Visit>
  Status EachRows(Visit visit) const {
    const size_t count = sorted_ ? sorted_->size() : state_.batches().size();
    std::vector<Place> places;  // few
    for (size_t i = 0; i < count; ++i) {
      const BatchId id = sorted_ ? (*sorted_)[i] : i;
      if (!Succeeded(id)) continue;
      places.clear();
      state_.AppendRows(id, places);
      for (const Place& place : places) {
        if (Status visited = visit(place); !visited.ok()) return visited;
      }
    }
    return {};
  }

 private:
  bool Succeeded(BatchId id) const { return state_.StateOf(id) == MiniBatch::State::kSucceeded; }

  const JobState& state_;
  std::optional<std::vector<uint32_t>> sorted_;  // ids of whole mini-batches: below 2³²
};

}  // namespace

Result<Publication> PublishOutput(Sink& sink, const Ledger& ledger, const JobState& state,
                                  const PublishOptions& options) {
  const Succession batches(state, options.order);
  uint64_t total = state.header().size();
  const Status added_up = batches.EachRows([&total](const Place& rows) {
    total += rows.length;
    return Status();
  });
  if (!added_up.ok()) return added_up.error();
  const Result<std::optional<uint64_t>> room = sink.Room();
  if (!room.ok()) return room.error();
  if (*room && **room < total + kSpareBytes) {
    return Error{Code::kNoSpace, fmt::format("{}: {} bytes are free, the output needs {}",
                                             sink.Location(), **room, total)};
  }

  const Result<std::unique_ptr<Writer>> begun = sink.Begin(ledger.token_path());
  if (!begun.ok()) return begun.error();
  BlockWriter writer(**begun);
  const RowFormat::Put put = [&writer](std::string_view bytes) { return writer.Add(bytes); };
  const std::unique_ptr<RowFormat> format = MakeRowFormat(options.format, state.header());
  if (const Status added = format->Begin(put); !added.ok()) return added.error();
  RowReader reader(ledger);
  const Status copied = batches.EachRows([&](const Place& place) {
    const Result<std::string_view> rows = reader.Read(place);
    return rows.ok() ? format->Add(*rows, put) : Status(rows.error());
  });
  if (!copied.ok()) return copied.error();
  if (const Status added = format->End(put); !added.ok()) return added.error();
  if (const Status flushed = writer.Flush(); !flushed.ok()) return flushed.error();

  const Published written{sink.Location(), writer.size(), state.counts().rows, writer.Digest()};
  const Replaceable replaceable{state.settings() && state.settings()->may_replace,
                                state.last_published()};
  Result<Commit> commit = (*begun)->End(written, replaceable);
  if (!commit.ok()) return commit.error();
  if (commit->end == Committed::kStale) return Error{Code::kStale, std::move(commit->why)};
  if (commit->end == Committed::kForeign) return Error{Code::kExists, std::move(commit->why)};
  return Publication{written, std::move(commit->set_aside)};
}

}  // namespace parallelrun
