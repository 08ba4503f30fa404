#include "job/work.h"

#define XXH_STATIC_LINKING_ONLY  // the streaming state, on the stack
#include <xxhash.h>

#include <cassert>
#include <cstring>
#include <limits>

#include "base/bytes.h"
#include "job/record_codec.h"
#include "job/work_flags.h"

namespace parallelrun::job {
namespace {

constexpr uint8_t kFilesWork = 1;
constexpr uint8_t kSliceWork = 2;
constexpr uint8_t kLinesWork = 3;
constexpr uint8_t kRankWork = 4;
constexpr uint8_t kTablesWork = 5;
constexpr size_t kAttemptsOffset = 2;
constexpr size_t kAttemptsEnd = kAttemptsOffset + sizeof(uint16_t);

// Of a file of a folder a version has one length, and tells the size; others do not.
void PutVersion(Encoder& to, bool in_store, std::string_view version) {
  if (in_store) to.U8(static_cast<uint8_t>(version.size()));
  to.Bytes(version);
}

void PutFound(Encoder& to, bool in_store, uint64_t size, std::string_view version) {
  if (in_store) to.U64(size);
  PutVersion(to, in_store, version);
}

// What the mini-batch gets, after the head that is common to all.

// How Work names the files of a chunk.
enum class Naming : uint8_t { kPaths, kObjects, kUrls };

void PutFiles(Encoder& to, Naming naming, std::string_view root, std::string_view names,
              const std::string_view* versions, size_t files) {
  to.Text(root);
  to.Text(names);
  for (size_t i = 0; i < files; ++i) {
    const bool nobody_looked = naming == Naming::kPaths && versions[i] == kNoVersion;
    if (naming != Naming::kUrls && !nobody_looked) {
      PutVersion(to, naming == Naming::kObjects, versions[i]);
    } else {  // nothing is to be compared
      to.U64(std::numeric_limits<uint64_t>::max());
      to.I64(0);
    }
  }
}

std::string MetadataList(const std::string_view* metadata, size_t files) {
  std::string list = "[";
  for (size_t i = 0; i < files; ++i) {
    if (i > 0) list += ',';
    list += metadata[i];
  }
  return list + ']';
}

std::string WithMembers(std::string_view format, const std::string& members) {
  std::string with(format.empty() ? "{}" : format);
  if (members.empty()) return with;
  with.pop_back();  // the brace
  if (with.size() > 1) with += ',';
  return with + members + '}';
}

void PutDelimited(Encoder& to, bool in_store, const TabularChunk& chunk, const Slice& slice,
                  const std::string& members) {
  to.Text(chunk.path);
  to.U64(slice.offset);
  to.U64(slice.length);
  to.Text(chunk.header);
  PutFound(to, in_store, chunk.size, chunk.version);
  to.Text(members.empty() ? std::string(chunk.format) : WithMembers(chunk.format, members));
}

void PutLines(Encoder& to, bool in_store, const TabularChunk& chunk, const Slice& slice,
              const std::string& members) {
  to.Text(chunk.path);
  to.U64(slice.offset);
  to.U64(slice.length);
  PutFound(to, in_store, chunk.size, chunk.version);
  to.Text(members.empty() ? std::string(chunk.format) : WithMembers(chunk.format, members));
}

// Row groups are named in the format; the reader finds their bytes itself.
void PutRowGroups(Encoder& to, bool in_store, const TabularChunk& chunk, const Slice& slice,
                  const std::string& members) {
  std::string format = "{\"format\":\"parquet\",\"rowGroups\":[";
  for (uint64_t i = 0; i < slice.length; ++i) {
    if (i > 0) format += ',';
    format += std::to_string(slice.offset + i);
  }
  format = WithMembers(format + "]}", members);
  to.Text(chunk.path);
  to.U64(0);
  to.U64(chunk.size);
  to.Text("");  // header
  PutFound(to, in_store, chunk.size, chunk.version);
  to.Text(format);
}

void PutTables(Encoder& to, bool in_store, const TableGroup& group, std::string_view format,
               const std::string& members) {
  to.U32(static_cast<uint32_t>(group.slices.size()));
  for (const TableSlice& slice : group.slices) {
    to.Text(slice.path);
    to.U64(slice.offset);
    to.U64(slice.length);
    to.Text(slice.header);
    PutFound(to, in_store, slice.size, slice.version);
  }
  to.Text(members.empty() ? std::string(format) : WithMembers(format, members));
}

// The `first`-th to the `last`-th (excluded) of NUL-joined names.
std::string_view SomeNames(std::string_view names, uint32_t first, uint32_t last) {
  size_t begin = 0;
  for (uint32_t i = 0; i < first; ++i) begin = names.find('\0', begin) + 1;
  size_t end = begin;
  for (uint32_t i = first; i < last; ++i) {
    end = names.find('\0', i == first ? begin : end + 1);
    if (end == std::string_view::npos) return names.substr(begin);
  }
  return names.substr(begin, end - begin);
}

}  // namespace

Result<WorkMaker> WorkMaker::FromRecord(std::string encoded) {
  WorkMaker maker;
  maker.encoded_ = std::make_unique<std::string>(std::move(encoded));
  std::string_view bytes = *maker.encoded_;
  Result<DecodedRecord> decoded = DecodeRecord(bytes);
  if (!decoded.ok()) return decoded.error();
  auto* chunk = std::get_if<PlanChunkRecord>(&decoded->record);
  if (chunk == nullptr || !bytes.empty()) {
    return Error{Code::kCorrupt, "a plan chunk was expected, but the record is another one"};
  }
  maker.chunk_ = std::move(*chunk);
  maker.item_starts_.reserve(maker.chunk_.Batches());
  uint64_t items = 0;
  for (uint32_t i = 0; i < maker.chunk_.Batches(); ++i) {
    maker.item_starts_.push_back(items);
    items += maker.chunk_.ItemsOf(i);
  }
  if (auto may_lose = MayLoseOf(maker.chunk_)) {
    maker.may_lose_ = std::make_unique<MayLose>(std::move(*may_lose));
    const std::string_view format = maker.may_lose_->format;
    if (auto* rows = std::get_if<TabularChunk>(&maker.chunk_.content)) rows->format = format;
    if (auto* tables = std::get_if<TableGroupsChunk>(&maker.chunk_.content)) {
      tables->format = format;
    }
  }
  if (const auto* files = std::get_if<FilesChunk>(&maker.chunk_.content)) {
    maker.name_starts_.reserve(files->versions.size());
    maker.name_starts_.push_back(0);
    for (size_t at = files->names.find('\0'); at != std::string_view::npos;
         at = files->names.find('\0', at + 1)) {
      maker.name_starts_.push_back(static_cast<uint32_t>(at + 1));
    }
  }
  return maker;
}

std::string WorkMaker::Make(uint32_t index) const {
  assert(index < chunk_.Batches());
  return Encode(index, chunk_.first + index, {0, chunk_.ItemsOf(index), true});
}

std::string WorkMaker::MakePiece(uint32_t index, BatchId id, uint32_t first, uint32_t items) const {
  assert(index < chunk_.Batches() && first + items <= chunk_.ItemsOf(index));
  return Encode(index, id, {first, items, false});
}

// What the format of a table says beside what stands in the chunk.
std::string WorkMaker::Members(uint32_t index, const Range& range) const {
  std::string members = format_members_;
  const auto add = [&members](const std::string& member) {
    if (!members.empty()) members += ',';
    members += member;
  };
  if (path_values_) {
    std::string values;
    const auto add_value = [&](std::string_view path) {
      values += (values.empty() ? "" : ",") + path_values_(path);
    };
    if (const auto* tabular = std::get_if<TabularChunk>(&chunk_.content)) add_value(tabular->path);
    if (const auto* tables = std::get_if<TableGroupsChunk>(&chunk_.content)) {
      for (const TableSlice& slice : tables->groups[index].slices) add_value(slice.path);
    }
    add("\"pathValues\":[" + values + "]");
  }
  if (may_lose_) add(may_lose_->of_batch[index]);
  if (!range.whole) {
    // Only some rows of what the Work names are meant.
    add("\"rows\":[" + std::to_string(range.first) + "," + std::to_string(range.items) + "]");
  }
  return members;
}

std::string_view WorkMaker::FileName(size_t file) const {
  const std::string_view names = std::get<FilesChunk>(chunk_.content).names;
  const size_t begin = name_starts_[file];
  // The NUL before the next name belongs to neither.
  const size_t end = file + 1 < name_starts_.size() ? name_starts_[file + 1] - 1 : names.size();
  return names.substr(begin, end - begin);
}

std::string WorkMaker::Encode(uint32_t index, BatchId id, const Range& range) const {
  const uint32_t items = range.items;
  const bool in_store = !chunk_.store.empty() && !urls_;
  const Naming naming = urls_ ? Naming::kUrls : in_store ? Naming::kObjects : Naming::kPaths;
  const std::string members = Members(index, range);
  const auto* const files = std::get_if<FilesChunk>(&chunk_.content);
  const bool has_metadata = files != nullptr && !files->metadata.empty();
  std::string work;
  Encoder to(work);
  const auto head = [&](uint8_t kind, std::string_view context) {
    to.U8(kind);
    to.U8(static_cast<uint8_t>((in_store ? kOfStore : 0) | (has_metadata ? kHasMetadata : 0)));
    to.U16(0);  // failed attempts
    to.U64(id);
    to.U64(chunk_.first_item + item_starts_[index] + range.first);
    to.U32(items);
    to.Text(context);
    if (in_store) to.Text(chunk_.store);
  };
  if (files != nullptr) {
    const size_t begin = size_t{index} * files->files_per_batch + range.first;
    const size_t end = begin + items;
    const size_t names_begin = name_starts_[begin];
    // The NUL before the next name belongs to neither.
    const size_t names_end =
        end < name_starts_.size() ? name_starts_[end] - 1 : files->names.size();
    head(kFilesWork, "");
    PutFiles(to, naming, files->root, files->names.substr(names_begin, names_end - names_begin),
             &files->versions[begin], items);
    if (has_metadata) to.Text(MetadataList(&files->metadata[begin], items));
  } else if (const auto* tabular = std::get_if<TabularChunk>(&chunk_.content)) {
    const Slice& slice = tabular->slices[index];
    const bool lines = tabular->kind == RowKind::kJsonLines;
    head(lines ? kLinesWork : kSliceWork, tabular->context);
    switch (tabular->kind) {
      case RowKind::kDelimited: PutDelimited(to, in_store, *tabular, slice, members); break;
      case RowKind::kJsonLines: PutLines(to, in_store, *tabular, slice, members); break;
      case RowKind::kParquet: PutRowGroups(to, in_store, *tabular, slice, members); break;
    }
  } else if (const auto* groups = std::get_if<FileGroupsChunk>(&chunk_.content)) {
    const FileGroup& group = groups->groups[index];
    head(kFilesWork, group.context);
    PutFiles(to, naming, groups->root,
             range.whole ? group.names : SomeNames(group.names, range.first, range.first + items),
             group.versions.data() + range.first, items);
  } else if (const auto* tables = std::get_if<TableGroupsChunk>(&chunk_.content)) {
    const TableGroup& group = tables->groups[index];
    head(kTablesWork, group.context);
    PutTables(to, in_store, group, tables->format, members);
  } else {
    head(kRankWork, "");
  }
  return work;
}

void SetWorkAttempts(std::string& work, uint16_t failed_attempts) {
  assert(work.size() >= kAttemptsEnd);
  std::memcpy(work.data() + kAttemptsOffset, &failed_attempts, sizeof(failed_attempts));
}

uint64_t WorkDigest(const std::string& work) {
  assert(work.size() >= kAttemptsEnd);
  char head[kAttemptsEnd] = {};
  std::memcpy(head, work.data(), kAttemptsOffset);
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, head, sizeof(head));
  XXH3_64bits_update(&state, work.data() + kAttemptsEnd, work.size() - kAttemptsEnd);
  return XXH3_64bits_digest(&state);
}

}  // namespace parallelrun::job
