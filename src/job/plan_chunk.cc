#include "job/plan_chunk.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace parallelrun {
namespace {

constexpr uint8_t kFiles = 1;
constexpr uint8_t kRanks = 4;
constexpr uint8_t kFileGroups = 5;
constexpr uint8_t kTableGroups = 6;

constexpr size_t kVersionSize = 16;  // of a file of a folder: u64 size, i64 modification time
constexpr size_t kSliceSize = 20;
constexpr size_t kLeastFileGroup = 4 + 4 + 4 + kVersionSize;
constexpr size_t kLeastTableSlice = 4 + 4 + 8 + 8 + 4 + kVersionSize;
constexpr size_t kLeastTableGroup = 4 + 4 + kLeastTableSlice;

void PutVersion(Encoder& to, std::string_view version) {
  assert(version.size() == kVersionSize);
  to.Bytes(version);
}

void Put(Encoder& to, const FilesChunk& c) {
  to.U8(kFiles);
  to.U32(c.files_per_batch);
  to.U32(static_cast<uint32_t>(c.versions.size()));
  to.Text(c.root);
  to.Text(c.names);
  for (const std::string_view version : c.versions) PutVersion(to, version);
}

void Put(Encoder& to, const TabularChunk& c) {
  to.U8(static_cast<uint8_t>(c.kind));
  to.Text(c.path);
  PutVersion(to, c.version);
  to.Text(c.context);
  if (c.kind == RowKind::kDelimited) to.Text(c.header);
  if (c.kind != RowKind::kParquet) to.Text(c.format);
  to.U32(static_cast<uint32_t>(c.slices.size()));
  for (const Slice& slice : c.slices) {
    to.U64(slice.offset);
    to.U64(slice.length);
    to.U32(slice.rows);
  }
}

void Put(Encoder& to, const RankChunk& c) {
  to.U8(kRanks);
  to.U32(c.count);
}

void Put(Encoder& to, const GroupPlace& place) {
  to.U64(place.listing);
  to.U32(place.next_group);
}

void Put(Encoder& to, const FileGroupsChunk& c) {
  to.U8(kFileGroups);
  Put(to, c.place);
  to.Text(c.root);
  to.U32(static_cast<uint32_t>(c.groups.size()));
  for (const FileGroup& group : c.groups) {
    to.Text(group.context);
    to.U32(static_cast<uint32_t>(group.versions.size()));
    to.Text(group.names);
    for (const std::string_view version : group.versions) PutVersion(to, version);
  }
}

void Put(Encoder& to, const TableGroupsChunk& c) {
  to.U8(kTableGroups);
  Put(to, c.place);
  to.Text(c.format);
  to.U32(static_cast<uint32_t>(c.groups.size()));
  for (const TableGroup& group : c.groups) {
    to.Text(group.context);
    to.U32(static_cast<uint32_t>(group.slices.size()));
    for (const TableSlice& slice : group.slices) {
      to.Text(slice.path);
      to.Text(slice.header);
      to.U64(slice.offset);
      to.U64(slice.length);
      to.U32(slice.rows);
      PutVersion(to, slice.version);
    }
  }
}

// The braces of the initializers below evaluate in order, which is the order of the bytes.

std::string_view GetVersion(Decoder& from) { return from.Bytes(kVersionSize); }

uint64_t SizeIn(std::string_view version) { return Decoder(version).U64(); }

GroupPlace GetPlace(Decoder& from) { return GroupPlace{from.U64(), from.U32()}; }

// `names` must hold `files` names, and a version for each must follow.
std::vector<std::string_view> GetVersions(Decoder& from, std::string_view names, uint32_t files) {
  const auto found = std::count(names.begin(), names.end(), '\0') + 1;
  if (files == 0 || found != files || from.left() / kVersionSize < files)
    return from.Fail(), std::vector<std::string_view>();
  std::vector<std::string_view> versions;
  versions.reserve(files);
  for (uint32_t i = 0; i < files; ++i) versions.push_back(GetVersion(from));
  return versions;
}

FilesChunk GetFiles(Decoder& from) {
  FilesChunk c;
  c.files_per_batch = from.U32();
  const uint32_t files = from.Count(kVersionSize);
  c.root = from.Text();
  c.names = from.Text();
  if (c.files_per_batch == 0) from.Fail();
  c.versions = GetVersions(from, c.names, files);
  return c;
}

TabularChunk GetTabular(Decoder& from, RowKind kind) {
  TabularChunk c;
  c.kind = kind;
  c.path = from.Text();
  c.version = GetVersion(from);
  c.size = SizeIn(c.version);
  c.context = from.Text();
  if (kind == RowKind::kDelimited) c.header = from.Text();
  if (kind != RowKind::kParquet) c.format = from.Text();
  const uint32_t slices = from.Count(kSliceSize);
  if (slices == 0) from.Fail();
  c.slices.reserve(slices);
  for (uint32_t i = 0; i < slices; ++i) {
    const Slice slice{from.U64(), from.U64(), from.U32()};
    if (kind == RowKind::kParquet && slice.length > TabularChunk::kMostRowGroups) from.Fail();
    c.slices.push_back(slice);
  }
  return c;
}

RankChunk GetRanks(Decoder& from) {
  const RankChunk c{from.U32()};
  if (c.count == 0 || c.count > RankChunk::kMost) return from.Fail(), RankChunk();
  return c;
}

FileGroupsChunk GetFileGroups(Decoder& from) {
  FileGroupsChunk c;
  c.place = GetPlace(from);
  c.root = from.Text();
  const uint32_t groups = from.Count(kLeastFileGroup);
  if (groups == 0) from.Fail();
  c.groups.reserve(groups);
  for (uint32_t i = 0; i < groups && from.ok(); ++i) {
    FileGroup& group = c.groups.emplace_back();
    group.context = from.Text();
    const uint32_t files = from.Count(kVersionSize);
    group.names = from.Text();
    group.versions = GetVersions(from, group.names, files);
  }
  return c;
}

TableGroup GetTableGroup(Decoder& from) {
  TableGroup group;
  group.context = from.Text();
  const uint32_t slices = from.Count(kLeastTableSlice);
  if (slices == 0) from.Fail();
  group.slices.reserve(slices);
  uint64_t rows = 0;
  for (uint32_t i = 0; i < slices && from.ok(); ++i) {
    TableSlice& slice = group.slices.emplace_back(
        TableSlice{from.Text(), from.Text(), from.U64(), from.U64(), from.U32(), 0, {}});
    slice.version = GetVersion(from);
    slice.size = SizeIn(slice.version);
    rows += slice.rows;
  }
  if (rows > std::numeric_limits<uint32_t>::max()) from.Fail();
  return group;
}

TableGroupsChunk GetTableGroups(Decoder& from) {
  TableGroupsChunk c;
  c.place = GetPlace(from);
  c.format = from.Text();
  const uint32_t groups = from.Count(kLeastTableGroup);
  if (groups == 0) from.Fail();
  c.groups.reserve(groups);
  for (uint32_t i = 0; i < groups && from.ok(); ++i) c.groups.push_back(GetTableGroup(from));
  return c;
}

uint32_t BatchesOf(const FilesChunk& c) {
  const uint64_t per = c.files_per_batch;
  return static_cast<uint32_t>((c.versions.size() + per - 1) / per);
}
uint32_t BatchesOf(const TabularChunk& c) { return static_cast<uint32_t>(c.slices.size()); }
uint32_t BatchesOf(const RankChunk& c) { return c.count; }
uint32_t BatchesOf(const FileGroupsChunk& c) { return static_cast<uint32_t>(c.groups.size()); }
uint32_t BatchesOf(const TableGroupsChunk& c) { return static_cast<uint32_t>(c.groups.size()); }

uint32_t ItemsAt(const FilesChunk& c, uint32_t index) {
  const uint64_t begin = uint64_t{index} * c.files_per_batch;
  return static_cast<uint32_t>(std::min<uint64_t>(c.files_per_batch, c.versions.size() - begin));
}
uint32_t ItemsAt(const TabularChunk& c, uint32_t index) { return c.slices[index].rows; }
uint32_t ItemsAt(const RankChunk&, uint32_t) { return 1; }
uint32_t ItemsAt(const FileGroupsChunk& c, uint32_t index) {
  return static_cast<uint32_t>(c.groups[index].versions.size());
}
uint32_t ItemsAt(const TableGroupsChunk& c, uint32_t index) { return c.groups[index].Rows(); }

}  // namespace

uint32_t TableGroup::Rows() const {
  uint32_t rows = 0;
  for (const TableSlice& slice : slices) rows += slice.rows;
  return rows;
}

uint32_t PlanChunkRecord::Batches() const {
  return std::visit([](const auto& c) { return BatchesOf(c); }, content);
}

uint64_t PlanChunkRecord::Items() const {
  const uint32_t batches = Batches();
  uint64_t items = 0;
  for (uint32_t i = 0; i < batches; ++i) items += ItemsOf(i);
  return items;
}

uint32_t PlanChunkRecord::ItemsOf(uint32_t index) const {
  assert(index < Batches());
  return std::visit([&](const auto& c) { return ItemsAt(c, index); }, content);
}

void EncodePlanChunk(const PlanChunkRecord& chunk, Encoder& to) {
  to.U64(chunk.first);
  to.U64(chunk.first_item);
  to.U32(chunk.input);
  std::visit([&](const auto& content) { Put(to, content); }, chunk.content);
}

PlanChunkRecord DecodePlanChunk(Decoder& from) {
  PlanChunkRecord r;
  r.first = from.U64();
  r.first_item = from.U64();
  r.input = from.U32();
  const uint8_t kind = from.U8();
  switch (kind) {
    case kFiles: r.content = GetFiles(from); break;
    case static_cast<uint8_t>(RowKind::kDelimited):
    case static_cast<uint8_t>(RowKind::kJsonLines):
    case static_cast<uint8_t>(RowKind::kParquet):
      r.content = GetTabular(from, RowKind{kind});
      break;
    case kRanks: r.content = GetRanks(from); break;
    case kFileGroups: r.content = GetFileGroups(from); break;
    case kTableGroups: r.content = GetTableGroups(from); break;
    default: from.Fail();
  }
  return r;
}

}  // namespace parallelrun
