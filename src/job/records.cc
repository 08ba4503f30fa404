#include "job/records.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/bytes.h"

namespace parallelrun {
namespace {

constexpr size_t kPrefixSize = 5;                           // type and length
constexpr size_t kRowsHeadSize = 8 + 12;                    // id, fence
constexpr size_t kResultHeadSize = 8 + 12 + 8 + 8 + 4 + 4;  // and node, process, time, counts

constexpr uint8_t kChunkOfFiles = 1;
constexpr uint8_t kChunkOfSlices = 2;
constexpr size_t kStampSize = 16;
constexpr size_t kSliceSize = 20;

template <RecordType type, typename T>
constexpr bool kHasType =
    std::is_same_v<std::variant_alternative_t<static_cast<size_t>(type) - 1, Record>, T>;
static_assert(kHasType<RecordType::kSeal, SealRecord> &&
              kHasType<RecordType::kPlanChunk, PlanChunkRecord> &&
              kHasType<RecordType::kResult, ResultRecord> &&
              kHasType<RecordType::kPublished, PublishedRecord>);

void Put(Encoder& to, const Fence& fence) {
  to.U32(fence.epoch);
  to.U64(fence.number);
}

void Put(Encoder& to, const FileStamp& stamp) {
  to.U64(stamp.size);
  to.I64(stamp.mtime_ns);
}

void Put(Encoder& to, const SealRecord& r) {
  to.U32(r.predecessor);
  to.U64(r.length);
  to.U64(r.digest);
}

void Put(Encoder& to, const SettingsRecord& r) {
  to.U32(r.generation);
  to.I64(r.wall_us);
  to.U64(r.code_digest);
  to.Text(r.resource_uid);
  to.Text(r.plan_settings);
  to.Text(r.job);
}

void Put(Encoder& to, const FilesChunk& c) {
  to.U8(kChunkOfFiles);
  to.U32(c.files_per_batch);
  to.U32(static_cast<uint32_t>(c.stamps.size()));
  to.Text(c.root);
  to.Text(c.names);
  for (const FileStamp& stamp : c.stamps) Put(to, stamp);
}

void Put(Encoder& to, const TabularChunk& c) {
  to.U8(kChunkOfSlices);
  to.Text(c.path);
  Put(to, c.stamp);
  to.Text(c.header);
  to.Text(c.format);
  to.U32(static_cast<uint32_t>(c.slices.size()));
  for (const Slice& slice : c.slices) {
    to.U64(slice.offset);
    to.U64(slice.length);
    to.U32(slice.rows);
  }
}

void Put(Encoder& to, const PlanChunkRecord& r) {
  to.U64(r.first);
  to.U64(r.first_item);
  to.U32(r.input);
  std::visit([&](const auto& content) { Put(to, content); }, r.content);
}

void Put(Encoder& to, const PlanEndRecord& r) {
  to.U64(r.batches);
  to.U64(r.items);
}

void Put(Encoder& to, const RowsRecord& r) {
  to.U64(r.id);
  Put(to, r.fence);
  to.Bytes(r.rows);
}

void Put(Encoder& to, const ResultRecord& r) {
  to.U64(r.id);
  Put(to, r.fence);
  to.U32(r.node);
  to.U32(r.process);
  to.U64(r.run_ns);
  to.U32(r.items_succeeded);
  to.U32(r.row_count);
  to.Bytes(r.rows);
}

void Put(Encoder& to, const FailedRecord& r) {
  to.U64(r.id);
  Put(to, r.fence);
  to.U32(r.node);
  to.U32(r.process);
  to.U64(r.run_ns);
  to.U8(static_cast<uint8_t>(r.cause));
  to.U8(r.final ? 1 : 0);
  to.Text(r.kind);
  to.Text(r.message);
  to.Text(r.log);
}

void Put(Encoder& to, const LostRecord& r) {
  to.U64(r.id);
  Put(to, r.fence);
}

void Put(Encoder& to, const VerdictRecord& r) {
  to.U8(static_cast<uint8_t>(r.outcome));
  to.I64(r.wall_us);
  to.Text(r.reason);
  to.Text(r.message);
}

void Put(Encoder& to, const PublishedRecord& r) {
  to.Text(r.path);
  to.U64(r.bytes);
  to.U64(r.rows);
  for (const uint8_t byte : r.sha256) to.U8(byte);
}

// The braces of the initializers below evaluate in order, which is the order of the bytes.

Fence GetFence(Decoder& from) { return Fence{from.U32(), from.U64()}; }

FileStamp GetStamp(Decoder& from) { return FileStamp{from.U64(), from.I64()}; }

FilesChunk GetFilesChunk(Decoder& from) {
  FilesChunk c;
  c.files_per_batch = from.U32();
  const uint32_t files = from.Count(kStampSize);
  c.root = from.Text();
  c.names = from.Text();
  const auto names = std::count(c.names.begin(), c.names.end(), '\0') + 1;
  if (c.files_per_batch == 0 || files == 0 || names != files) return from.Fail(), FilesChunk();
  c.stamps.reserve(files);
  for (uint32_t i = 0; i < files; ++i) c.stamps.push_back(GetStamp(from));
  return c;
}

TabularChunk GetTabularChunk(Decoder& from) {
  TabularChunk c;
  c.path = from.Text();
  c.stamp = GetStamp(from);
  c.header = from.Text();
  c.format = from.Text();
  const uint32_t slices = from.Count(kSliceSize);
  if (slices == 0) return from.Fail(), TabularChunk();
  c.slices.reserve(slices);
  for (uint32_t i = 0; i < slices; ++i) {
    c.slices.push_back(Slice{from.U64(), from.U64(), from.U32()});
  }
  return c;
}

PlanChunkRecord GetPlanChunk(Decoder& from) {
  PlanChunkRecord r;
  r.first = from.U64();
  r.first_item = from.U64();
  r.input = from.U32();
  switch (from.U8()) {
    case kChunkOfFiles: r.content = GetFilesChunk(from); break;
    case kChunkOfSlices: r.content = GetTabularChunk(from); break;
    default: from.Fail();
  }
  return r;
}

ResultRecord GetResult(Decoder& from) {
  return {from.U64(), GetFence(from), from.U32(), from.U32(),
          from.U64(), from.U32(),     from.U32(), from.Bytes(from.left())};
}

bool GetBool(Decoder& from) {
  const uint8_t value = from.U8();
  if (value > 1) from.Fail();
  return value == 1;
}

FailedRecord GetFailed(Decoder& from) {
  FailedRecord r{from.U64(),       GetFence(from), from.U32(),  from.U32(),  from.U64(),
                 Cause{from.U8()}, GetBool(from),  from.Text(), from.Text(), from.Text()};
  if (r.cause < Cause::kRun || r.cause > Cause::kInput) from.Fail();
  return r;
}

VerdictRecord GetVerdict(Decoder& from) {
  VerdictRecord r{Outcome{from.U8()}, from.I64(), from.Text(), from.Text()};
  if (r.outcome != Outcome::kSucceeded && r.outcome != Outcome::kFailed) from.Fail();
  return r;
}

PublishedRecord GetPublished(Decoder& from) {
  PublishedRecord r;
  r.path = from.Text();
  r.bytes = from.U64();
  r.rows = from.U64();
  for (uint8_t& byte : r.sha256) byte = from.U8();
  return r;
}

Record GetBody(RecordType type, Decoder& from) {
  switch (type) {
    case RecordType::kSeal: return SealRecord{from.U32(), from.U64(), from.U64()};
    case RecordType::kSettings:
      return SettingsRecord{from.U32(),  from.I64(),  from.U64(),
                            from.Text(), from.Text(), from.Text()};
    case RecordType::kPlanChunk: return GetPlanChunk(from);
    case RecordType::kPlanEnd: return PlanEndRecord{from.U64(), from.U64()};
    case RecordType::kRows: return RowsRecord{from.U64(), GetFence(from), from.Bytes(from.left())};
    case RecordType::kResult: return GetResult(from);
    case RecordType::kFailed: return GetFailed(from);
    case RecordType::kLost: return LostRecord{from.U64(), GetFence(from)};
    case RecordType::kVerdict: return GetVerdict(from);
    case RecordType::kPublished: return GetPublished(from);
  }
  from.Fail();
  return SealRecord{};
}

}  // namespace

uint32_t PlanChunkRecord::Batches() const {
  if (const auto* files = std::get_if<FilesChunk>(&content)) {
    const uint64_t per = files->files_per_batch;
    return static_cast<uint32_t>((files->stamps.size() + per - 1) / per);
  }
  return static_cast<uint32_t>(std::get<TabularChunk>(content).slices.size());
}

uint64_t PlanChunkRecord::Items() const {
  if (const auto* files = std::get_if<FilesChunk>(&content)) return files->stamps.size();
  uint64_t rows = 0;
  for (const Slice& slice : std::get<TabularChunk>(content).slices) rows += slice.rows;
  return rows;
}

uint32_t PlanChunkRecord::ItemsOf(uint32_t index) const {
  assert(index < Batches());
  if (const auto* files = std::get_if<FilesChunk>(&content)) {
    const uint64_t begin = uint64_t{index} * files->files_per_batch;
    return static_cast<uint32_t>(
        std::min<uint64_t>(files->files_per_batch, files->stamps.size() - begin));
  }
  return std::get<TabularChunk>(content).slices[index].rows;
}

RecordType TypeOf(const Record& record) { return static_cast<RecordType>(record.index() + 1); }

size_t RowsOffset(RecordType type) {
  if (type == RecordType::kRows) return kPrefixSize + kRowsHeadSize;
  if (type == RecordType::kResult) return kPrefixSize + kResultHeadSize;
  return 0;
}

size_t EncodeRecord(const Record& record, std::string& out) {
  const size_t start = out.size();
  const RecordType type = TypeOf(record);
  Encoder to(out);
  to.U8(static_cast<uint8_t>(type));
  to.U32(0);
  std::visit([&](const auto& r) { Put(to, r); }, record);
  const auto length = static_cast<uint32_t>(out.size() - start - kPrefixSize);
  std::memcpy(out.data() + start + 1, &length, sizeof(length));
  return RowsOffset(type);
}

Result<DecodedRecord> DecodeRecord(std::string_view& bytes) {
  Decoder prefix(bytes);
  const uint8_t type = prefix.U8();
  Decoder body(prefix.Text());
  if (!prefix.ok()) {
    return Error{Code::kCorrupt,
                 fmt::format("a record is cut off: {} bytes are left of it", bytes.size())};
  }
  const size_t length = bytes.size() - prefix.left();
  DecodedRecord decoded{GetBody(RecordType{type}, body), RowsOffset(RecordType{type})};
  if (!body.Done()) {
    return Error{Code::kCorrupt, fmt::format("a record of type {} and {} bytes is not what its "
                                             "type says, or is of a newer version",
                                             type, length)};
  }
  bytes.remove_prefix(length);
  return decoded;
}

}  // namespace parallelrun
