#include "job/record_codec.h"

#include <spdlog/fmt/fmt.h>

#include <cstring>

#include "base/bytes.h"

namespace parallelrun::job {
namespace {

constexpr size_t kPrefixSize = 5;         // type and length
constexpr size_t kAgainSize = 8 + 4 + 4;  // of one result
constexpr size_t kRowsHeadSize = 8 + 12;  // id, fence
constexpr size_t kResultHeadSize =
    kRowsHeadSize + 4 + 4 + BytesOfResult(Carrier::kRecord, true);  // and node, process

template <RecordType type, typename T>
constexpr bool kHasType =
    std::is_same_v<std::variant_alternative_t<static_cast<size_t>(type) - 1, Record>, T>;
static_assert(kHasType<RecordType::kSeal, SealRecord> &&
              kHasType<RecordType::kPlanChunk, PlanChunkRecord> &&
              kHasType<RecordType::kResult, ResultRecord> &&
              kHasType<RecordType::kPublished, PublishedRecord> &&
              kHasType<RecordType::kStarted, StartedRecord> &&
              kHasType<RecordType::kTypes, TypesRecord> &&
              kHasType<RecordType::kSkipped, SkippedRecord> &&
              kHasType<RecordType::kAgain, AgainRecord> &&
              std::variant_size_v<Record> == static_cast<size_t>(RecordType::kAgain) + 1);

void Put(Encoder& to, const Fence& fence) {
  to.U32(fence.epoch);
  to.U64(fence.number);
}

void Put(Encoder& to, const OutputRanges& output) {
  to.U64(output.stdout_begin);
  to.U64(output.stdout_end);
  to.U64(output.stderr_begin);
  to.U64(output.stderr_end);
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
  to.U8(r.may_replace ? 1 : 0);
}

void Put(Encoder& to, const PlanChunkRecord& r) { EncodePlanChunk(r, to); }

void Put(Encoder& to, const PlanEndRecord& r) {
  to.U64(r.batches);
  to.U64(r.items);
}

void Put(Encoder& to, const RowsRecord& r) {
  to.U64(r.id);
  Put(to, r.fence);
  to.Bytes(r.rows);
}

// What both ends of an attempt begin with: whose it was, and the numbers of its result.
template <typename Ended>
void PutAttempt(Encoder& to, const Ended& r, bool succeeded) {
  to.U64(r.id);
  Put(to, r.fence);
  to.U32(r.node);
  to.U32(r.process);
  PutResult(to, r, Carrier::kRecord, succeeded);
}

void Put(Encoder& to, const ResultRecord& r) {
  PutAttempt(to, r, true);
  to.Bytes(r.rows);
}

void Put(Encoder& to, const FailedRecord& r) {
  PutAttempt(to, r, false);
  to.U8(static_cast<uint8_t>(r.cause));
  to.U8(static_cast<uint8_t>(r.end));
  to.Text(r.kind);
  to.Text(r.message);
  to.Text(r.log);
  Put(to, r.output);
}

void Put(Encoder& to, const HeaderRecord& r) { to.Text(r.line); }

void Put(Encoder& to, const LostRecord& r) {
  to.U64(r.id);
  Put(to, r.fence);
}

void Put(Encoder& to, const StartedRecord& r) {
  to.U64(r.id);
  Put(to, r.fence);
  to.U8(r.begun ? 1 : 0);
}

void Put(Encoder& to, const TypesRecord& r) {
  to.U32(r.input);
  to.Text(r.types);
}

void Put(Encoder& to, const CompanyRecord& r) {
  to.U32(r.most);
  to.U32(static_cast<uint32_t>(r.ids.size()));
  for (const BatchId id : r.ids) to.U64(id);
}

void Put(Encoder& to, const SkippedRecord& r) {
  to.U64(r.id);
  Put(to, r.fence);
  to.U32(r.items);
}

void Put(Encoder& to, const ShutdownRecord& r) {
  to.U32(r.node);
  to.U32(r.process);
  to.U8(static_cast<uint8_t>(r.end));
  to.Text(r.message);
  to.Text(r.log);
}

void Put(Encoder& to, const AgainRecord& r) {
  to.U32(r.node);
  to.U32(r.process);
  to.U32(static_cast<uint32_t>(r.results.size()));
  for (const AgainRecord::Result& one : r.results) {
    to.U64(one.id);
    to.U32(one.items_succeeded);
    to.U32(one.row_count);
  }
}

void Put(Encoder& to, const UnknownRecord& r) { to.Bytes(r.body); }

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

template <typename Ended>
void GetAttempt(Decoder& from, Ended& r, bool succeeded) {
  r.id = from.U64();
  r.fence = GetFence(from);
  r.node = from.U32();
  r.process = from.U32();
  GetResult(from, r, Carrier::kRecord, succeeded);
}

ResultRecord GetSucceeded(Decoder& from) {
  ResultRecord r;
  GetAttempt(from, r, true);
  r.rows = from.Bytes(from.left());
  return r;
}

bool GetBool(Decoder& from) {
  const uint8_t value = from.U8();
  if (value > 1) from.Fail();
  return value == 1;
}

FailedRecord GetFailed(Decoder& from) {
  FailedRecord r;
  GetAttempt(from, r, false);
  r.cause = Cause{from.U8()};
  r.end = AttemptEnd{from.U8()};
  r.kind = from.Text();
  r.message = from.Text();
  r.log = from.Text();
  // Ledgers of before do not have it.
  if (from.left() > 0) r.output = {from.U64(), from.U64(), from.U64(), from.U64()};
  if (r.cause < Cause::kRun || r.cause > Cause::kMisfit) from.Fail();
  if (r.end > AttemptEnd::kSplit) from.Fail();
  return r;
}

CompanyRecord GetCompany(Decoder& from) {
  CompanyRecord r;
  r.most = from.U32();
  const uint64_t count = from.U32();
  if (r.most == 0 || count * sizeof(BatchId) != from.left()) {
    from.Fail();
    return r;
  }
  r.ids.reserve(count);
  for (uint64_t i = 0; i < count; ++i) r.ids.push_back(from.U64());
  return r;
}

ShutdownRecord GetShutdown(Decoder& from) {
  ShutdownRecord r{from.U32(), from.U32(), ProcessEnd{from.U8()}, from.Text(), from.Text()};
  if (r.end < ProcessEnd::kOpen || r.end > ProcessEnd::kLost) from.Fail();
  return r;
}

AgainRecord GetAgain(Decoder& from) {
  AgainRecord r;
  r.node = from.U32();
  r.process = from.U32();
  const uint64_t count = from.U32();
  if (count * kAgainSize != from.left()) {
    from.Fail();
    return r;
  }
  r.results.reserve(count);
  for (uint64_t i = 0; i < count; ++i) r.results.push_back({from.U64(), from.U32(), from.U32()});
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
      return SettingsRecord{from.U32(),
                            from.I64(),
                            from.U64(),
                            from.Text(),
                            from.Text(),
                            from.Text(),
                            from.left() > 0 && GetBool(from)};
    case RecordType::kPlanChunk: return DecodePlanChunk(from);
    case RecordType::kPlanEnd: return PlanEndRecord{from.U64(), from.U64()};
    case RecordType::kRows: return RowsRecord{from.U64(), GetFence(from), from.Bytes(from.left())};
    case RecordType::kResult: return GetSucceeded(from);
    case RecordType::kFailed: return GetFailed(from);
    case RecordType::kLost: return LostRecord{from.U64(), GetFence(from)};
    case RecordType::kVerdict: return GetVerdict(from);
    case RecordType::kPublished: return GetPublished(from);
    case RecordType::kHeader: return HeaderRecord{from.Text()};
    case RecordType::kStarted: return StartedRecord{from.U64(), GetFence(from), GetBool(from)};
    case RecordType::kTypes: return TypesRecord{from.U32(), from.Text()};
    case RecordType::kCompany: return GetCompany(from);
    case RecordType::kSkipped: return SkippedRecord{from.U64(), GetFence(from), from.U32()};
    case RecordType::kShutdown: return GetShutdown(from);
    case RecordType::kAgain: return GetAgain(from);
  }
  if (const auto number = static_cast<uint8_t>(type); number >= kFirstUnknownType) {
    return UnknownRecord{number, from.Bytes(from.left())};
  }
  from.Fail();
  return SealRecord{};
}

}  // namespace

RecordType TypeOf(const Record& record) {
  if (const auto* unknown = std::get_if<UnknownRecord>(&record)) return RecordType{unknown->type};
  return static_cast<RecordType>(record.index() + 1);
}

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

}  // namespace parallelrun::job
