#include "coordinator/publisher.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "base/mutation.h"
#include "coordinator/output_file.h"

namespace parallelrun {
namespace {

constexpr size_t kBlock = size_t{1} << 20;
constexpr uint64_t kSpareBytes = uint64_t{1} << 20;  // left free beside the output

// Gathers rows into blocks, so that small mini-batches do not cost a write each.
class BlockWriter {
 public:
  explicit BlockWriter(File& file) : file_(file) {}
  Status Add(std::string_view rows) {
    buffer_.append(rows);
    return buffer_.size() < kBlock ? Status() : Flush();
  }
  Status Flush() {
    digest_.Add(buffer_);
    const Status written = file_.WriteAt(offset_, buffer_);
    offset_ += buffer_.size();
    buffer_.clear();
    return written;
  }
  uint64_t size() const { return offset_; }
  Sha256::Digest Digest() { return digest_.Finish(); }

 private:
  File& file_;
  Sha256 digest_;
  std::string buffer_;
  uint64_t offset_ = 0;
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

constexpr int kPlaceTries = 100;  // files that appear while others are set aside

Error Gone(const Ledger& ledger) {
  return {Code::kStale, ledger.token_path() + " is gone: a newer coordinator took over"};
}

// Out of the way of the output, under a name that is free.
Result<std::string> SetAside(Files& files, const std::string& path) {
  for (int i = 1; i <= kPlaceTries; ++i) {
    const std::string aside = fmt::format("{}.set-aside-{}", path, i);
    const Result<bool> renamed = files.RenameNew(path, aside);
    if (renamed.ok() && *renamed) return aside;
    if (!renamed.ok() && renamed.error().code == Code::kExists) continue;
    if (!renamed.ok()) return renamed.error();
    const Result<bool> there = files.Exists(aside);
    if (!there.ok()) return there.error();
    if (*there) continue;
    const Status moved = files.Rename(path, aside);
    if (!moved.ok()) return moved.error();
    return aside;
  }
  return Error{Code::kExists, fmt::format("{} and {} copies that were set aside are there: move "
                                          "them away",
                                          path, kPlaceTries)};
}

// One try to rename the token onto the output's name. False: something is there.
Result<bool> PlaceNew(Files& files, const std::string& token, const std::string& path) {
  const Result<bool> renamed = files.RenameNew(token, path);
  if (!renamed.ok() && renamed.error().code == Code::kExists) return false;
  if (!renamed.ok() || *renamed) return renamed;
  // The file system cannot tell at one go: what appears between these two is lost.
  const Result<bool> there = files.Exists(path);
  if (!there.ok() || *there) return there.ok() ? Result<bool>(false) : there;
  const Status placed = files.Rename(token, path);
  return placed.ok() ? Result<bool>(true) : placed.error();
}

// Puts the whole token in the output's place; says where it has set aside what was damaged there.
Result<std::string> PutInPlace(Files& files, const std::string& token, const JobState& state,
                               const Published& written) {
  const std::string& path = written.path;
  const bool may_replace = state.settings() && state.settings()->may_replace;
  std::string aside;
  for (int i = 0; i < kPlaceTries; ++i) {
    if (may_replace || PARALLELRUN_MUTATED(kPublishUnchecked)) {
      const Status placed = files.Rename(token, path);
      return placed.ok() ? Result<std::string>(aside) : placed.error();
    }
    const Result<bool> placed = PlaceNew(files, token, path);
    if (!placed.ok()) return placed.error();
    if (*placed) return aside;
    // What an epoch of this run has put there before it could record that.
    const Result<std::string> differs = DamageOf(files, path, written);
    if (!differs.ok()) return differs.error();
    if (differs->empty()) {
      if (const Status removed = files.Remove(token); !removed.ok()) return removed.error();
      return aside;
    }
    const std::optional<Published>& last = state.last_published();
    if (!last) {
      return Error{Code::kExists,
                   path + " has appeared since the run began, and is not this run's: move it away"};
    }
    const Result<std::string> damage = DamageOf(files, path, *last);
    if (!damage.ok()) return damage.error();
    if (damage->empty()) {
      const Status replaced = files.Rename(token, path);
      return replaced.ok() ? Result<std::string>(aside) : replaced.error();
    }
    Result<std::string> set_aside = SetAside(files, path);
    if (!set_aside.ok() && set_aside.error().code == Code::kNotFound) continue;
    if (!set_aside.ok()) return set_aside;
    aside = std::move(*set_aside);
  }
  return Error{Code::kExists, path + " appears again and again: end what writes it"};
}

}  // namespace

Result<Publication> PublishOutput(Files& files, const Ledger& ledger, const JobState& state,
                                  const PublishOptions& options) {
  const std::string folder = std::filesystem::path(options.output_path).parent_path();
  const Succession batches(state, options.order);
  uint64_t total = state.header().size();
  const Status added_up = batches.EachRows([&total](const Place& rows) {
    total += rows.length;
    return Status();
  });
  if (!added_up.ok()) return added_up.error();
  const Result<uint64_t> room = files.FreeSpace(folder);
  if (room.ok() && *room < total + kSpareBytes) {
    return Error{Code::kNoSpace,
                 fmt::format("{}: {} bytes are free, the output needs {}", folder, *room, total)};
  }

  if (PARALLELRUN_MUTATED(kRenameWithoutToken))
    (void)files.CreateExclusive(ledger.token_path()).ok();
  Result<std::unique_ptr<File>> token = files.Open(ledger.token_path());
  if (!token.ok()) {
    return token.error().code == Code::kNotFound ? Gone(ledger) : token.error();
  }
  BlockWriter writer(**token);
  if (const Status added = writer.Add(state.header()); !added.ok()) return added.error();
  RowReader reader(ledger);
  const Status copied = batches.EachRows([&](const Place& place) {
    const Result<std::string_view> rows = reader.Read(place);
    return rows.ok() ? writer.Add(*rows) : Status(rows.error());
  });
  if (!copied.ok()) return copied.error();
  if (const Status flushed = writer.Flush(); !flushed.ok()) return flushed.error();
  if (const Status synced = (*token)->Sync(); !synced.ok()) return synced.error();
  token->reset();
  const Published written{options.output_path, writer.size(), state.counts().rows, writer.Digest()};
  // Either of the two would keep a stale coordinator from publishing.
  const Status held =
      PARALLELRUN_MUTATED(kRenameWithoutToken) ? Status() : KeepHeld(files, options.held);
  if (!held.ok()) {
    // A successor takes the token first.
    const Result<bool> there = files.Exists(ledger.token_path());
    return there.ok() && !*there ? Gone(ledger) : held.error();
  }
  const Result<std::string> aside = PutInPlace(files, ledger.token_path(), state, written);
  if (!aside.ok()) return aside.error().code == Code::kNotFound ? Gone(ledger) : aside.error();
  if (const Status synced = files.SyncFolder(folder); !synced.ok()) return synced.error();
  return Publication{written, *aside};
}

}  // namespace parallelrun
