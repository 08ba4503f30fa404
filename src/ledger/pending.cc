#include "ledger/pending.h"

#include <spdlog/fmt/fmt.h>

#include <cassert>
#include <limits>
#include <utility>

namespace parallelrun::ledger {
namespace {

constexpr size_t kSpareLimit = size_t{8} << 20;  // memory kept between two flushes

// Who may use the room that is kept for the end. What is written beside one of these, in the same
// round, must be one of them too, or that room is of no use to any of them.
bool EndsJob(job::RecordType type) {
  return type == job::RecordType::kFailed || type == job::RecordType::kVerdict ||
         type == job::RecordType::kPublished || type == job::RecordType{job::kUsageType};
}

// Of these there are as many as there is work, and nobody waits for one of them to go on: a node
// holds leases meanwhile.
bool IsOfWork(job::RecordType type) {
  switch (type) {
    case job::RecordType::kRows:
    case job::RecordType::kResult:
    case job::RecordType::kFailed:
    case job::RecordType::kSkipped: return true;
    default: return static_cast<uint8_t>(type) >= job::kUsageType;
  }
}

}  // namespace

Result<Pending::Added> Pending::Add(const job::Record& record) {
  return Insert(1, job::TypeOf(record), kMaxRecordSize,
                [&](std::string& out) { job::EncodeRecord(record, out); });
}

Result<Pending::Added> Pending::AddEncoded(std::string_view encoded) {
  return Insert(1, job::RecordType{static_cast<uint8_t>(encoded.front())}, kMaxRecordSize,
                [&](std::string& out) { out.append(encoded); });
}

Result<Pending::Added> Pending::AddGroup(std::string_view encoded, uint32_t records) {
  return Insert(records, std::nullopt, kMaxGroupPayload,
                [&](std::string& out) { out.append(encoded); });
}

template <typename Put>
Result<Pending::Added> Pending::Insert(uint32_t records, std::optional<job::RecordType> type,
                                       size_t limit, Put put) {
  const std::lock_guard lock(mutex_);
  if (rounds_.empty() || rounds_.back().bytes.size() >= layout_.round_limit) StartRound();
  if (rounds_.back().groups.empty() ||
      rounds_.back().bytes.size() - rounds_.back().groups.back().start >= layout_.group_target) {
    StartGroup();
  }
  Round* round = &rounds_.back();
  size_t at = round->bytes.size();
  put(round->bytes);
  const size_t length = round->bytes.size() - at;
  if (length > limit) {
    round->bytes.resize(at);
    refused_ = Error{Code::kInvalid, fmt::format("a ledger record of {} bytes is over the limit "
                                                 "of {}",
                                                 length, limit)};
    return *refused_;
  }
  if (round->bytes.size() > layout_.round_limit &&
      at > layout_.round_header + layout_.group_header) {
    // Too much for this round: move the record to one of its own.
    const std::string moved = round->bytes.substr(at);
    round->bytes.resize(at);
    if (round->groups.back().records == 0) {
      round->bytes.resize(round->groups.back().start);
      round->groups.pop_back();
    }
    end_ = round->end();
    StartRound();
    StartGroup();
    round = &rounds_.back();
    at = round->bytes.size();
    round->bytes.append(moved);
  }
  round->groups.back().records += records;
  round->ends_job &= type && EndsJob(*type);
  round->urgent |= !type || !IsOfWork(*type);
  end_ = round->end();
  return Added{round->offset + at, static_cast<uint32_t>(length)};
}

void Pending::StartRound() {
  rounds_.emplace_back();
  rounds_.back().offset = end_;
  rounds_.back().bytes = std::exchange(spare_, {});
  rounds_.back().bytes.assign(layout_.round_header, '\0');
}

void Pending::StartGroup() {
  Round& round = rounds_.back();
  round.groups.push_back({round.bytes.size(), 0});
  round.bytes.resize(round.bytes.size() + layout_.group_header, '\0');
}

Pending::Waiting Pending::waiting() const {
  const std::lock_guard lock(mutex_);
  Waiting all;
  for (const Round& round : rounds_) {
    all.bytes += round.bytes.size();
    all.urgent |= round.urgent;
  }
  return all;
}

Result<std::deque<Round>> Pending::Take() {
  const std::lock_guard lock(mutex_);
  if (refused_) return *refused_;
  return std::exchange(rounds_, {});
}

void Pending::Recycle(Round round) {
  const std::lock_guard lock(mutex_);
  if (round.bytes.capacity() > kSpareLimit || round.bytes.capacity() < spare_.capacity()) return;
  round.bytes.clear();
  spare_ = std::move(round.bytes);
}

Ledger::Appended AppendedAt(uint32_t epoch, const Result<Pending::Added>& added,
                            job::RecordType type) {
  assert(added.ok());  // else the record is over the limit
  if (!added.ok()) return {std::numeric_limits<uint64_t>::max(), {}, {}};
  const job::Place record{epoch, added->offset, added->length};
  job::Place rows;
  if (const auto skip = static_cast<uint32_t>(job::RowsOffset(type)); skip != 0) {
    rows = {record.epoch, record.offset + skip, record.length - skip};
  }
  return {record.offset + record.length, record, rows};
}

}  // namespace parallelrun::ledger
