#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "base/escape.h"
#include "job/may_lose.h"
#include "plan/grouping.h"
#include "plan/listing.h"
#include "plan/row_files.h"
#include "plan/source.h"

namespace parallelrun::plan {
namespace {

using Chunk = Result<std::optional<std::string>>;

// What a file adds to the size of its chunk, beside its texts.
constexpr size_t kFileBytes = 64;
constexpr size_t kVersionInIt = 16;

// What a longer version adds.
size_t BeyondFileBytes(const store::Version& version) {
  return version.bytes().size() - std::min(version.bytes().size(), kVersionInIt);
}

// A mini-batch for each group of files. The whole input is listed before the first chunk.
class GroupSource : public PlanSource {
 public:
  GroupSource(const PlanInput& input, store::Store& store)
      : input_(input), store_(store), files_(input, store) {}

  Chunk Next(PlanCursor& at) override {
    if (!grouping_) {
      const Status begun = Begin(at);
      if (!begun.ok()) return begun.error();
    }
    return input_.kind == PlanKind::kFiles ? NextFiles(at) : NextTables(at);
  }

  LeftOut left_out() const override { return grouping_ ? grouping_->left_out() : LeftOut(); }

 private:
  Status Begin(PlanCursor& at) {
    auto made = Grouping::Make(input_, store_);
    if (!made.ok()) return made.error();
    grouping_ = std::make_unique<Grouping>(std::move(*made));
    if (at.listing != 0 && at.listing != grouping_->digest()) {
      return Error{Code::kInvalid,
                   fmt::format("{}: files below {} were added, removed or renamed since they were "
                               "grouped by partitionKeys, and not all groups were planned yet: "
                               "undo it, or start over by overwriting the output",
                               PlaceOf(input_), Printable(input_.root, 4096))};
    }
    at.listing = grouping_->digest();
    if (grouping_->size() > 0) at.last_name = grouping_->name(0, 0);
    return files_.Prepare(at.header);
  }

  // kInvalid when the group alone is too large for a chunk; false when it does not fit beside
  // what the chunk holds.
  Result<bool> Fits(size_t group, size_t chunk_bytes, size_t group_bytes) const {
    if (group_bytes > kMostChunkBytes) {
      return Error{Code::kInvalid,
                   fmt::format("{}: the {} files with {} are too many for one mini-batch, their "
                               "names take more than 48 MiB; add a key to partitionKeys",
                               PlaceOf(input_), grouping_->files(group),
                               Printable(grouping_->context(group), 1024))};
    }
    return chunk_bytes + group_bytes <= kMostChunkBytes;
  }

  Chunk NextFiles(PlanCursor& at) {
    const uint64_t wanted = std::min(FilesWanted(at), input_.most_items - at.next_item);
    job::FileGroupsChunk chunk;
    std::deque<std::string> names;  // of the groups
    std::deque<std::vector<store::Version>> versions;
    const std::string root = store_.Location("");
    size_t files = 0;
    size_t bytes = 0;
    uint32_t group = at.next_group;
    for (; group < grouping_->size() && files < wanted; ++group) {
      job::FileGroup found;
      std::string joined;
      std::vector<store::Version> found_versions;
      size_t beyond = 0;
      for (size_t i = 0; i < grouping_->files(group); ++i) {
        const std::string name(grouping_->name(group, i));
        auto file = Look(input_, store_, name);
        if (!file.ok()) return file.error();
        if (!*file) continue;  // removed since it was listed
        if (!found_versions.empty()) joined += '\0';
        joined += name;
        beyond += BeyondFileBytes((*file)->version);
        found_versions.push_back(std::move((*file)->version));
      }
      if (found_versions.empty()) continue;
      found.context = grouping_->context(group);
      const size_t size =
          joined.size() + found.context.size() + found_versions.size() * kFileBytes + beyond;
      const auto fits = Fits(group, bytes, size);
      if (!fits.ok()) return fits.error();
      if (!*fits) break;
      bytes += size;
      files += found_versions.size();
      found.names = names.emplace_back(std::move(joined));
      found.versions = ViewsOf(versions.emplace_back(std::move(found_versions)));
      chunk.groups.push_back(std::move(found));
    }
    at.next_group = group;
    if (chunk.groups.empty()) return Chunk(std::nullopt);
    chunk.place = {grouping_->digest(), group};
    chunk.root = root;
    return EncodeChunk(input_, std::move(chunk), at);
  }

  // The rows of one group.
  struct Table {
    std::deque<std::string> texts;  // that the slices point to
    std::vector<job::TableSlice> slices;
    std::vector<uint64_t> may_lose;  // of each
    size_t text_bytes = 0;
    uint64_t row_bytes = 0;
    bool compressed = false;  // some of its files
  };

  Chunk NextTables(PlanCursor& at) {
    const uint64_t wanted = SlicesWanted(at);
    bool compressed = false;
    job::TableGroupsChunk chunk;
    std::vector<std::vector<uint64_t>> may_lose;
    std::deque<Table> tables;  // stay where they are: the chunk points into them
    size_t files = 0;
    size_t bytes = 0;
    uint64_t row_bytes = 0;
    uint64_t rows = 0;
    const uint64_t most_rows = input_.most_items - at.next_item;
    while (at.next_group < grouping_->size() && chunk.groups.size() < wanted &&
           files < kMostFiles && row_bytes < kMostSliceBytes && rows < most_rows) {
      auto table = Held(at.next_group);
      if (!table.ok()) return table.error();
      const size_t size = table->text_bytes + grouping_->context(at.next_group).size() +
                          table->slices.size() * kFileBytes;
      const auto fits = Fits(at.next_group, bytes, size);
      if (!fits.ok()) return fits.error();
      if (!*fits) {
        held_ = std::move(*table);
        break;
      }
      const std::string& context = grouping_->context(at.next_group++);
      if (table->slices.empty()) continue;
      bytes += size;
      files += table->slices.size();
      row_bytes += table->row_bytes;
      compressed = compressed || table->compressed;
      chunk.groups.push_back({context, std::move(table->slices)});
      may_lose.push_back(std::move(table->may_lose));
      rows += chunk.groups.back().Rows();
      tables.push_back(std::move(*table));
    }
    if (chunk.groups.empty()) return Chunk(std::nullopt);
    chunk.place = {grouping_->digest(), at.next_group};
    std::string format = files_.Format(compressed, RowFiles::RowEnd::kAsFirstRows);
    if (files_.TellMayLose()) format = job::WithMayLose(format, may_lose);
    chunk.format = format;
    return EncodeChunk(input_, std::move(chunk), at);
  }

  // The table that did not fit the chunk before, or a new one.
  Result<Table> Held(size_t group) {
    if (!held_) return ReadTable(group);
    Table table = std::move(*held_);
    held_.reset();
    return table;
  }

  Result<Table> ReadTable(size_t group) const {
    Table table;
    uint64_t rows = 0;
    for (size_t i = 0; i < grouping_->files(group); ++i) {
      const std::string name(grouping_->name(group, i));
      auto file = files_.Open(name);
      if (!file.ok()) return file.error();
      if (!file->splitter) continue;  // removed since it was listed
      uint64_t may_lose = 0;
      auto slice = WholeFile(*file->splitter, may_lose);
      if (!slice.ok()) return slice.error().With(PlaceOf(input_));
      if (slice->rows == 0) continue;
      rows += slice->rows;
      table.compressed = table.compressed || file->splitter->compressed();
      slice->path = table.texts.emplace_back(store_.Location(name));
      slice->version = table.texts.emplace_back(file->splitter->found().version.bytes());
      slice->header = table.texts.emplace_back(std::move(file->header));
      table.text_bytes += slice->path.size() + slice->header.size() +
                          BeyondFileBytes(file->splitter->found().version);
      table.row_bytes += slice->length;
      table.slices.push_back(*slice);
      table.may_lose.push_back(may_lose);
    }
    if (rows > std::numeric_limits<uint32_t>::max()) {
      return Error{Code::kInvalid,
                   fmt::format("{}: a mini-batch of {} rows, those of the files "
                               "with {}, is too large; add a key to partitionKeys",
                               PlaceOf(input_), rows, Printable(grouping_->context(group), 1024))};
    }
    return table;
  }

  Result<job::TableSlice> WholeFile(RowSplitter& splitter, uint64_t& may_lose) const {
    job::TableSlice whole;
    whole.size = splitter.found().size;
    while (true) {
      const auto slice = splitter.Next(std::numeric_limits<uint64_t>::max());
      if (!slice.ok()) return slice.error();
      if (!*slice) break;
      if (whole.rows == 0) whole.offset = (*slice)->offset;
      whole.rows += (*slice)->rows;
      may_lose |= splitter.may_lose();
      whole.length = (*slice)->offset + (*slice)->length - whole.offset;
    }
    if (input_.kind == PlanKind::kParquet) {
      whole.offset = 0;
      whole.length = whole.size;
    }
    return whole;
  }

  const PlanInput& input_;
  store::Store& store_;
  RowFiles files_;
  std::unique_ptr<Grouping> grouping_;
  std::optional<Table> held_;
};

}  // namespace

std::unique_ptr<PlanSource> MakeGroupSource(const PlanInput& input, store::Store& store) {
  return std::make_unique<GroupSource>(input, store);
}

}  // namespace parallelrun::plan
