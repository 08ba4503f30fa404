// A plan chunk of the ledger (docs/ledger.md, "Plan chunk"): consecutive mini-batches and what each
// of them gets. Plain data; text is a view into the bytes that were decoded, or into the caller's
// memory when encoding. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "job/ids.h"

namespace parallelrun::job {

// What each file of a chunk was when it was listed: bytes that the store of the input has given,
// and only that reads (store/store.h). Of a file of a folder: 16 bytes, size and modification time.
// This one is of a file that nobody has looked at, or that was not there.
constexpr std::string_view kNoVersion("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);

// Mini-batches of one size.
struct FilesChunk {
  uint32_t files_per_batch = 1;
  std::string_view root;
  std::string_view names;                  // NUL-joined, `versions.size()` of them
  std::vector<std::string_view> versions;  // one a file
  // One a file too, JSON objects: what a manifest says of it. Empty: there is none.
  std::vector<std::string_view> metadata = {};
};

// A part of a file. Parquet: `offset` is the first row group and `length` their number.
struct Slice {
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t rows = 0;  // JSON lines: lines
};

// Stored: never renumber.
enum class RowKind : uint8_t { kDelimited = 2, kJsonLines = 3, kParquet = 7 };

// Mini-batches that are parts of one file.
struct TabularChunk {
  static constexpr uint64_t kMostRowGroups = 65'536;  // of a mini-batch
  std::string_view path;
  uint64_t size = 0;  // of the file, bytes
  std::string_view version = kNoVersion;
  std::string_view header;  // kDelimited only
  std::string_view format;  // JSON; empty for kParquet, whose Work says which row groups
  std::vector<Slice> slices;
  std::string_view context = {};  // JSON, or empty
  RowKind kind = RowKind::kDelimited;
};

// Mini-batches without input, of one item each.
struct RankChunk {
  static constexpr uint32_t kMost = 65'536;
  uint32_t count = 0;
};

// How far the groups of an input are planned, so that a restart that groups anew can go on.
struct GroupPlace {
  uint64_t listing = 0;     // digest of the names that were grouped; 0: not grouped by keys
  uint32_t next_group = 0;  // of the input, behind this chunk
};

struct FileGroup {
  std::string_view context;  // JSON, or empty
  std::string_view names;    // NUL-joined, `versions.size()` of them
  std::vector<std::string_view> versions;
};

// Mini-batches that each have a context and any number of files.
struct FileGroupsChunk {
  GroupPlace place;
  std::string_view root;
  std::vector<FileGroup> groups;
};

struct TableSlice {
  std::string_view path;
  std::string_view header;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint32_t rows = 0;
  uint64_t size = 0;  // of the file, bytes
  std::string_view version = kNoVersion;
};

struct TableGroup {
  std::string_view context;
  std::vector<TableSlice> slices;

  uint32_t Rows() const;
};

// Mini-batches that are the rows of several files.
struct TableGroupsChunk {
  GroupPlace place;
  std::string_view format;
  std::vector<TableGroup> groups;
};

struct PlanChunkRecord {
  BatchId first = 0;
  uint64_t first_item = 0;
  uint32_t input = 0;
  std::variant<FilesChunk, TabularChunk, RankChunk, FileGroupsChunk, TableGroupsChunk> content;
  std::string_view store = {};  // that the input lies in; empty: a folder of a volume

  uint32_t Batches() const;
  uint64_t Items() const;
  // Items of the `index`-th mini-batch of the chunk.
  uint32_t ItemsOf(uint32_t index) const;
};

// The body of the record.
void EncodePlanChunk(const PlanChunkRecord& chunk, Encoder& to);
// Fails `from` when the bytes are no plan chunk, or one whose counts contradict each other.
PlanChunkRecord DecodePlanChunk(Decoder& from);

}  // namespace parallelrun::job
