#include "plan/parquet_splitter.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "base/escape.h"
#include "plan/block_reader.h"

namespace parallelrun::plan {
namespace {

constexpr std::string_view kMagic = "PAR1";
constexpr std::string_view kEncryptedMagic = "PARE";
constexpr size_t kTailSize = 8;  // length of the footer and the magic
constexpr uint32_t kMostFooter = 256 * 1024 * 1024;

Error Bad(const std::string& path, std::string_view why) {
  return {Code::kInvalid, fmt::format("{} cannot be read as Parquet: {}; fix it, or name it in "
                                      "inputs[].exclude",
                                      Printable(path, 4096), why)};
}

struct Footer {
  std::unique_ptr<BlockReader> file;
  std::string bytes;
};

Result<Footer> ReadFooter(store::Store& store, const std::string& name) {
  auto reader = BlockReader::Open(store, name);
  if (!reader.ok()) return reader.error();
  const std::string& path = (*reader)->path();
  const uint64_t size = (*reader)->found().size;
  if (size < kMagic.size() + kTailSize) return Bad(path, "it is too short");
  const auto tail = (*reader)->ReadAt(size - kTailSize, kTailSize);
  if (!tail.ok()) return tail.error();
  const std::string_view magic = std::string_view(*tail).substr(sizeof(uint32_t));
  if (magic == kEncryptedMagic) return Bad(path, "its footer is encrypted");
  if (magic != kMagic) return Bad(path, "it does not end with the mark of such a file");
  uint32_t length = 0;
  std::memcpy(&length, tail->data(), sizeof(length));
  if (length > size - kMagic.size() - kTailSize) return Bad(path, "its footer is cut off");
  if (length > kMostFooter) return Bad(path, "its footer is larger than 256 MiB");
  auto footer = (*reader)->ReadAt(size - kTailSize - length, length);
  if (!footer.ok()) return footer.error();
  return Footer{std::move(*reader), *std::move(footer)};
}

// Says of the column whether it has missing values, as far as its pages tell.
Status AskPages(const BlockReader& file, ParquetColumn& column, NullReads& reads) {
  if (!column.untold.empty() && !reads.settled.contains(column.name)) {
    Nulls all = Nulls::kNone;
    for (const ParquetChunk& chunk : column.untold) {
      const auto nulls = FindNulls(file, chunk, reads.left);
      if (!nulls.ok()) return nulls.error();
      all = *nulls;
      if (all != Nulls::kNone) break;
    }
    column.nulls = all != Nulls::kNone;
    if (all != Nulls::kUntold) column.untold.clear();
  }
  if (column.nulls) reads.settled.insert(column.name);
  return {};
}

}  // namespace

Result<std::unique_ptr<ParquetSplitter>> ParquetSplitter::Open(store::Store& store,
                                                               const std::string& name) {
  const auto footer = ReadFooter(store, name);
  if (!footer.ok()) return footer.error();
  const std::string path = store.Location(name);
  auto groups = ParseParquetFooter(footer->bytes);
  if (!groups.ok()) return Bad(path, groups.error().message);
  return std::unique_ptr<ParquetSplitter>(
      new ParquetSplitter(path, footer->file->found(), std::move(*groups)));
}

Result<std::vector<ParquetColumn>> ReadParquetColumns(store::Store& store, const std::string& name,
                                                      NullReads& reads) {
  const auto footer = ReadFooter(store, name);
  if (!footer.ok()) return footer.error();
  const std::string path = store.Location(name);
  const auto groups = ParseParquetFooter(footer->bytes);
  if (!groups.ok()) return Bad(path, groups.error().message);
  const auto has_rows = [](const ParquetRowGroup& group) { return group.rows > 0; };
  if (std::none_of(groups->begin(), groups->end(), has_rows)) return std::vector<ParquetColumn>();
  auto columns = ParseParquetColumns(footer->bytes);
  if (!columns.ok()) return Bad(path, columns.error().message);
  for (ParquetColumn& column : *columns) {
    if (const Status asked = AskPages(*footer->file, column, reads); !asked.ok()) {
      return asked.error();
    }
  }
  return columns;
}

ParquetSplitter::ParquetSplitter(std::string path, store::Found found,
                                 std::vector<ParquetRowGroup> groups)
    : path_(std::move(path)), found_(std::move(found)), groups_(std::move(groups)) {}

Result<std::optional<job::Slice>> ParquetSplitter::Next(uint64_t size) {
  while (next_ < groups_.size() && groups_[next_].rows == 0) ++next_;
  const uint64_t begin = next_;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  // A row group without rows goes with the ones before it.
  while (next_ < groups_.size() && next_ - begin < job::TabularChunk::kMostRowGroups &&
         (rows == 0 || bytes < size || groups_[next_].rows == 0)) {
    rows += groups_[next_].rows;
    bytes += groups_[next_].bytes;
    ++next_;
  }
  if (rows == 0) return std::optional<job::Slice>();
  if (rows > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kInvalid, fmt::format("{}: a mini-batch of {} rows is too large; lower "
                                             "miniBatchSize, or write smaller row groups",
                                             Printable(path_, 4096), rows)};
  }
  return std::optional<job::Slice>(job::Slice{begin, next_ - begin, static_cast<uint32_t>(rows)});
}

}  // namespace parallelrun::plan
