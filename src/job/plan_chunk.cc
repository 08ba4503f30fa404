#include "job/plan_chunk.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace parallelrun::job {
namespace {

constexpr uint8_t kFiles = 1;
constexpr uint8_t kRanks = 4;
constexpr uint8_t kFileGroups = 5;
constexpr uint8_t kTableGroups = 6;
constexpr uint8_t kFilesWithMetadata = 8;

constexpr uint8_t kInStore = 128;  // added to the kind

constexpr size_t kSliceSize = 20;

// How the versions of a chunk are written. The size of a file stands in front of those of tables,
// but for folders, whose versions begin with it.
struct VersionForm {
  static constexpr uint8_t kOfFolder = 16;
  static constexpr uint8_t kEachItsOwn = 255;

  std::string_view store;
  uint8_t width = kOfFolder;

  size_t Least() const { return width == kEachItsOwn ? 2 : width; }
  size_t LeastOfTable() const { return (store.empty() ? 0 : sizeof(uint64_t)) + Least(); }
};

// All versions of a chunk, one after the other.
template <typename Each>
void EachVersion(const PlanChunkRecord& chunk, Each each) {
  if (const auto* files = std::get_if<FilesChunk>(&chunk.content)) {
    for (const std::string_view version : files->versions) each(version);
  } else if (const auto* groups = std::get_if<FileGroupsChunk>(&chunk.content)) {
    for (const FileGroup& group : groups->groups) {
      for (const std::string_view version : group.versions) each(version);
    }
  } else if (const auto* table = std::get_if<TabularChunk>(&chunk.content)) {
    each(table->version);
  } else if (const auto* tables = std::get_if<TableGroupsChunk>(&chunk.content)) {
    for (const TableGroup& group : tables->groups) {
      for (const TableSlice& slice : group.slices) each(slice.version);
    }
  }
}

VersionForm FormOf(const PlanChunkRecord& chunk) {
  VersionForm form{chunk.store};
  if (chunk.store.empty()) return form;
  size_t width = 0;
  bool same = true;
  EachVersion(chunk, [&](std::string_view version) {
    assert(!version.empty() && version.size() <= VersionForm::kEachItsOwn);
    same = same && (width == 0 || version.size() == width);
    width = version.size();
  });
  form.width = same ? static_cast<uint8_t>(width) : VersionForm::kEachItsOwn;
  return form;
}

void PutKind(Encoder& to, const VersionForm& form, uint8_t kind) {
  if (form.store.empty()) return to.U8(kind);
  to.U8(kInStore + kind);
  to.Text(form.store);
  to.U8(form.width);
}

void PutVersion(Encoder& to, const VersionForm& form, std::string_view version) {
  if (form.width == VersionForm::kEachItsOwn) to.U8(static_cast<uint8_t>(version.size()));
  assert(form.width == VersionForm::kEachItsOwn || version.size() == form.width);
  to.Bytes(version);
}

// Of a table.
void PutFound(Encoder& to, const VersionForm& form, uint64_t size, std::string_view version) {
  if (!form.store.empty()) to.U64(size);
  PutVersion(to, form, version);
}

void Put(Encoder& to, const VersionForm& form, const FilesChunk& c) {
  assert(c.metadata.empty() || c.metadata.size() == c.versions.size());
  PutKind(to, form, c.metadata.empty() ? kFiles : kFilesWithMetadata);
  to.U32(c.files_per_batch);
  to.U32(static_cast<uint32_t>(c.versions.size()));
  to.Text(c.root);
  to.Text(c.names);
  for (const std::string_view version : c.versions) PutVersion(to, form, version);
  for (const std::string_view metadata : c.metadata) to.Text(metadata);
}

void Put(Encoder& to, const VersionForm& form, const TabularChunk& c) {
  PutKind(to, form, static_cast<uint8_t>(c.kind));
  to.Text(c.path);
  PutFound(to, form, c.size, c.version);
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

void Put(Encoder& to, const VersionForm&, const RankChunk& c) {
  to.U8(kRanks);
  to.U32(c.count);
}

void Put(Encoder& to, const GroupPlace& place) {
  to.U64(place.listing);
  to.U32(place.next_group);
}

void Put(Encoder& to, const VersionForm& form, const FileGroupsChunk& c) {
  PutKind(to, form, kFileGroups);
  Put(to, c.place);
  to.Text(c.root);
  to.U32(static_cast<uint32_t>(c.groups.size()));
  for (const FileGroup& group : c.groups) {
    to.Text(group.context);
    to.U32(static_cast<uint32_t>(group.versions.size()));
    to.Text(group.names);
    for (const std::string_view version : group.versions) PutVersion(to, form, version);
  }
}

void Put(Encoder& to, const VersionForm& form, const TableGroupsChunk& c) {
  PutKind(to, form, kTableGroups);
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
      PutFound(to, form, slice.size, slice.version);
    }
  }
}

// The braces of the initializers below evaluate in order, which is the order of the bytes.

std::string_view GetVersion(Decoder& from, const VersionForm& form) {
  if (form.width != VersionForm::kEachItsOwn) return from.Bytes(form.width);
  const uint8_t size = from.U8();
  if (size == 0) from.Fail();
  return from.Bytes(size);
}

// Of a table.
void GetFound(Decoder& from, const VersionForm& form, uint64_t& size, std::string_view& version) {
  if (!form.store.empty()) size = from.U64();
  version = GetVersion(from, form);
  if (form.store.empty()) size = Decoder(version).U64();
}

GroupPlace GetPlace(Decoder& from) { return GroupPlace{from.U64(), from.U32()}; }

// `names` must hold `files` names, and a version for each must follow.
std::vector<std::string_view> GetVersions(Decoder& from, const VersionForm& form,
                                          std::string_view names, uint32_t files) {
  const auto found = std::count(names.begin(), names.end(), '\0') + 1;
  if (files == 0 || found != files || from.left() / form.Least() < files)
    return from.Fail(), std::vector<std::string_view>();
  std::vector<std::string_view> versions;
  versions.reserve(files);
  for (uint32_t i = 0; i < files; ++i) versions.push_back(GetVersion(from, form));
  return versions;
}

FilesChunk GetFiles(Decoder& from, const VersionForm& form) {
  FilesChunk c;
  c.files_per_batch = from.U32();
  const uint32_t files = from.Count(form.Least());
  c.root = from.Text();
  c.names = from.Text();
  if (c.files_per_batch == 0) from.Fail();
  c.versions = GetVersions(from, form, c.names, files);
  return c;
}

FilesChunk GetFilesWithMetadata(Decoder& from, const VersionForm& form) {
  FilesChunk c = GetFiles(from, form);
  c.metadata.reserve(c.versions.size());
  for (size_t i = 0; i < c.versions.size() && from.ok(); ++i) c.metadata.push_back(from.Text());
  return c;
}

TabularChunk GetTabular(Decoder& from, const VersionForm& form, RowKind kind) {
  TabularChunk c;
  c.kind = kind;
  c.path = from.Text();
  GetFound(from, form, c.size, c.version);
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

RankChunk GetRanks(Decoder& from, const VersionForm& form) {
  const RankChunk c{from.U32()};
  if (c.count == 0 || c.count > RankChunk::kMost || !form.store.empty())
    return from.Fail(), RankChunk();
  return c;
}

FileGroupsChunk GetFileGroups(Decoder& from, const VersionForm& form) {
  FileGroupsChunk c;
  c.place = GetPlace(from);
  c.root = from.Text();
  const uint32_t groups = from.Count(4 + 4 + 4 + form.Least());
  if (groups == 0) from.Fail();
  c.groups.reserve(groups);
  for (uint32_t i = 0; i < groups && from.ok(); ++i) {
    FileGroup& group = c.groups.emplace_back();
    group.context = from.Text();
    const uint32_t files = from.Count(form.Least());
    group.names = from.Text();
    group.versions = GetVersions(from, form, group.names, files);
  }
  return c;
}

size_t LeastTableSlice(const VersionForm& form) { return 4 + 4 + 8 + 8 + 4 + form.LeastOfTable(); }

TableGroup GetTableGroup(Decoder& from, const VersionForm& form) {
  TableGroup group;
  group.context = from.Text();
  const uint32_t slices = from.Count(LeastTableSlice(form));
  if (slices == 0) from.Fail();
  group.slices.reserve(slices);
  uint64_t rows = 0;
  for (uint32_t i = 0; i < slices && from.ok(); ++i) {
    TableSlice& slice = group.slices.emplace_back(
        TableSlice{from.Text(), from.Text(), from.U64(), from.U64(), from.U32()});
    GetFound(from, form, slice.size, slice.version);
    rows += slice.rows;
  }
  if (rows > std::numeric_limits<uint32_t>::max()) from.Fail();
  return group;
}

TableGroupsChunk GetTableGroups(Decoder& from, const VersionForm& form) {
  TableGroupsChunk c;
  c.place = GetPlace(from);
  c.format = from.Text();
  const uint32_t groups = from.Count(4 + 4 + LeastTableSlice(form));
  if (groups == 0) from.Fail();
  c.groups.reserve(groups);
  for (uint32_t i = 0; i < groups && from.ok(); ++i) {
    c.groups.push_back(GetTableGroup(from, form));
  }
  return c;
}

// The kind, and how the versions behind it are written.
uint8_t GetKind(Decoder& from, VersionForm& form) {
  const uint8_t kind = from.U8();
  if (kind < kInStore) return kind;
  form.store = from.Text();
  form.width = from.U8();
  if (form.store.empty() || form.width == 0) from.Fail();
  // Counts are divided by it.
  if (form.width == 0) form.width = VersionForm::kEachItsOwn;
  return kind - kInStore;
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
  const VersionForm form = FormOf(chunk);
  std::visit([&](const auto& content) { Put(to, form, content); }, chunk.content);
}

PlanChunkRecord DecodePlanChunk(Decoder& from) {
  PlanChunkRecord r;
  r.first = from.U64();
  r.first_item = from.U64();
  r.input = from.U32();
  VersionForm form;
  const uint8_t kind = GetKind(from, form);
  r.store = form.store;
  switch (kind) {
    case kFiles: r.content = GetFiles(from, form); break;
    case kFilesWithMetadata: r.content = GetFilesWithMetadata(from, form); break;
    case static_cast<uint8_t>(RowKind::kDelimited):
    case static_cast<uint8_t>(RowKind::kJsonLines):
    case static_cast<uint8_t>(RowKind::kParquet):
      r.content = GetTabular(from, form, RowKind{kind});
      break;
    case kRanks: r.content = GetRanks(from, form); break;
    case kFileGroups: r.content = GetFileGroups(from, form); break;
    case kTableGroups: r.content = GetTableGroups(from, form); break;
    default: from.Fail();
  }
  return r;
}

}  // namespace parallelrun::job
