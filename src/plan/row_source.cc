#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "job/may_lose.h"
#include "plan/listing.h"
#include "plan/partition_format.h"
#include "plan/row_files.h"
#include "plan/source.h"

namespace parallelrun::plan {
namespace {

using Chunk = Result<std::optional<std::string>>;

job::RowKind RowKindOf(PlanKind kind) {
  if (kind == PlanKind::kJsonLines) return job::RowKind::kJsonLines;
  return kind == PlanKind::kParquet ? job::RowKind::kParquet : job::RowKind::kDelimited;
}

// Mini-batches that are slices of files, file by file.
class RowSource : public PlanSource {
 public:
  RowSource(const PlanInput& input, store::Store& store)
      : input_(input), store_(store), files_(input, store) {}

  Chunk Next(PlanCursor& at) override {
    if (!listing_) {
      const Status begun = Begin(at);
      if (!begun.ok()) return begun.error();
    }
    while (true) {
      if (!file_.splitter) {
        const auto opened = OpenNext(at);
        if (!opened.ok()) return opened.error();
        if (!*opened) return Chunk(std::nullopt);
      }
      const uint64_t most = SlicesWanted(at);
      job::TabularChunk rows;
      std::vector<uint64_t> may_lose;  // of each slice
      uint64_t left = input_.most_items - at.next_item;
      for (uint64_t bytes = 0; rows.slices.size() < most && bytes < kMostSliceBytes && left > 0;) {
        const auto slice = NextSlice(left);
        if (!slice.ok()) return slice.error().With(PlaceOf(input_));
        if (!*slice) break;
        if (file_.splitter->compressed() && !rows.slices.empty()) return TooManyRows(at.last_name);
        if (!file_.splitter->compressed()) bytes += (*slice)->length;
        rows.slices.push_back(**slice);
        may_lose.push_back(file_.splitter->may_lose());
        left -= std::min<uint64_t>(left, (*slice)->rows);
      }
      if (rows.slices.empty() && left == 0) return Chunk(std::nullopt);
      if (rows.slices.empty()) {
        file_.splitter.reset();
        continue;
      }
      at.next_offset = file_.splitter->compressed()
                           ? file_.splitter->found().size
                           : rows.slices.back().offset + rows.slices.back().length;
      return Encoded(std::move(rows), may_lose, at);
    }
  }

  LeftOut left_out() const override { return listing_ ? listing_->left_out() : LeftOut(); }

 private:
  Status Begin(const PlanCursor& at) {
    auto context = PathContext::Make(input_.partition_format, {});
    if (!context.ok()) return context.error().With(PlaceOf(input_));
    context_ = std::move(*context);
    const Status prepared = files_.Prepare(at.header);
    if (!prepared.ok()) return prepared;
    listing_ = std::make_unique<Listing>(input_, store_, at.last_name);
    if (at.last_name.empty()) return {};
    const bool text = input_.kind != PlanKind::kParquet;  // whose offsets are bytes
    if (text && at.next_offset == at.found.size) return {};
    return GoOn(at);
  }

  // Goes on behind the last chunk, in the file that it is from: offsets mean nothing in another
  // one.
  Status GoOn(const PlanCursor& at) {
    const std::string& name = at.last_name;
    const Status started = listing_->Start();
    if (!started.ok()) return started;
    const Status opened = Open(name);
    if (!opened.ok()) return opened;
    if (!file_.splitter) return NotPlannedYet(Code::kNotFound, name, "is gone", "back");
    const store::Found& now = file_.splitter->found();
    if (!store_.IsStill(at.found.version, now.version)) {
      return NotPlannedYet(Code::kInvalid, name, store_.Difference(at.found.version, now.version),
                           "back as it was");
    }
    file_.splitter->Seek(at.next_offset);
    return {};
  }

  Error NotPlannedYet(Code code, const std::string& name, const std::string& what,
                      const std::string& put) const {
    return {code, fmt::format("{}: {} {}, and a part of it is not planned yet; put it {}, or start "
                              "over by overwriting the output",
                              PlaceOf(input_), Printable(store_.Location(name), 4096), what, put)};
  }

  Error TooManyRows(const std::string& name) const {
    return {Code::kInvalid,
            fmt::format("{}: {} is compressed, and so one mini-batch, and has more rows than one "
                        "may have: decompress it",
                        PlaceOf(input_), Printable(store_.Location(name), 4096))};
  }

  // The next slice, of at most so many rows where the file can be cut there.
  Result<std::optional<job::Slice>> NextSlice(uint64_t most_rows) {
    RowSplitter& splitter = *file_.splitter;
    uint64_t size = file_.SliceSize(input_.batch_size);
    auto slice = splitter.Next(size);
    const bool whole = splitter.compressed() || input_.kind == PlanKind::kParquet;
    while (!whole && slice.ok() && *slice && (*slice)->rows > most_rows && size > 1) {
      splitter.Seek((*slice)->offset);
      // Of a size that one has seen: that of JSON lines is no number of bytes.
      size = std::max<uint64_t>(1, std::min<uint64_t>(size, (*slice)->length) / 2);
      slice = splitter.Next(size);
    }
    return slice;
  }

  // False at the end of the listing.
  Result<bool> OpenNext(PlanCursor& at) {
    while (!file_.splitter) {
      const auto next = listing_->Next();
      if (!next.ok()) return next.error();
      if (!*next) return false;
      at.last_name.assign((*next)->name);
      const Status opened = Open(at.last_name);
      if (!opened.ok()) return opened.error();
    }
    return true;
  }

  // Leaves file_ without a splitter when the file is gone.
  Status Open(const std::string& name) {
    auto context = context_.Of(name);
    if (!context.ok()) return context.error().With(PlaceOf(input_));
    auto opened = files_.Open(name);
    if (!opened.ok()) return opened.error();
    file_ = std::move(*opened);
    file_context_ = std::move(*context);
    return {};
  }

  std::optional<std::string> Encoded(job::TabularChunk rows, const std::vector<uint64_t>& may_lose,
                                     PlanCursor& at) const {
    const std::string path = store_.Location(at.last_name);
    std::string format = files_.Format(
        file_.splitter->compressed(),
        file_.delimiter_at_end ? RowFiles::RowEnd::kDelimiter : RowFiles::RowEnd::kNothing);
    if (files_.TellMayLose()) format = job::WithMayLose(format, may_lose);
    rows.kind = RowKindOf(input_.kind);
    rows.path = path;
    rows.size = file_.splitter->found().size;
    rows.version = file_.splitter->found().version.bytes();
    rows.header = file_.header;
    rows.context = file_context_;
    rows.format = format;
    return EncodeChunk(input_, std::move(rows), at);
  }

  const PlanInput& input_;
  store::Store& store_;
  RowFiles files_;
  PathContext context_;
  std::unique_ptr<Listing> listing_;
  RowFiles::Opened file_;  // at hand
  std::string file_context_;
};

}  // namespace

std::unique_ptr<PlanSource> MakeRowSource(const PlanInput& input, store::Store& store) {
  return std::make_unique<RowSource>(input, store);
}

}  // namespace parallelrun::plan
