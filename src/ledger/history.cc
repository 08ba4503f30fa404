#include "ledger/history.h"

#include <spdlog/fmt/fmt.h>

#include <deque>
#include <string_view>
#include <vector>

#include "job/record_codec.h"
#include "ledger/log_format.h"

namespace parallelrun::ledger {
namespace {

constexpr size_t kPeekBlockSize = 4096;

struct Peeked {
  std::optional<LogHeader> header;
  std::optional<job::SealRecord> seal;
};

// Header and seal of a log, where they are there and whole.
Result<Peeked> Peek(const Files& files, const std::string& folder, uint32_t epoch) {
  const std::string path = folder + "/" + LogName(epoch);
  Result<LogReader> reader = LogReader::Open(files, path, epoch, std::nullopt, kPeekBlockSize);
  if (!reader.ok()) {
    if (reader.error().code != Code::kNotFound) return reader.error();
    return Error{Code::kCorrupt,
                 path +
                     " is missing: restore it, or start the job from the beginning with "
                     "another state folder"};
  }
  const Result<std::optional<LogGroup>> group = reader->Next();
  if (!group.ok()) return group.error();
  if (!*group) return Peeked{reader->header(), std::nullopt};
  std::string_view payload = (*group)->payload;
  const Result<job::DecodedRecord> first = job::DecodeRecord(payload);
  const auto* seal = first.ok() ? std::get_if<job::SealRecord>(&first->record) : nullptr;
  if (seal == nullptr || seal->predecessor >= epoch) {
    return reader->Corrupt((*group)->offset,
                           "the first record is not the seal of an earlier epoch");
  }
  return Peeked{reader->header(), *seal};
}

class Replay {
 public:
  Replay(const Files& files, const std::string& folder, const Ledger::Visitor& visit)
      : files_(files), folder_(folder), visit_(visit) {}

  // The part of a log that a seal counts.
  Status SealedPart(uint32_t epoch, uint64_t length) {
    Result<LogReader> reader = LogReader::Open(files_, Path(epoch), epoch, length);
    if (!reader.ok()) return reader.error();
    for (;;) {
      const Result<std::optional<LogGroup>> group = reader->Next();
      if (!group.ok()) return group.error();
      if (!*group) break;
      if (Status s = Counted(*reader, epoch, **group); !s.ok()) return s;
    }
    if (reader->position() != length) {
      return reader->Corrupt(reader->position(), "the seal of a later epoch ends inside a group");
    }
    return {};
  }

  // The log of the predecessor, which nobody has sealed yet: what is known durable counts, the
  // whole groups beyond are copied to the log of `claiming`.
  Status OpenPart(uint32_t epoch, uint32_t claiming) {
    Result<LogReader> reader = LogReader::Open(files_, Path(epoch), epoch, std::nullopt);
    if (!reader.ok()) return reader.error();
    struct Held {
      LogGroup group;
      std::string payload;
    };
    std::deque<Held> held;  // not known durable so far; never more than one flush wrote
    for (;;) {
      const Result<std::optional<LogGroup>> group = reader->Next();
      if (!group.ok()) return group.error();
      if (!*group) break;
      for (; !held.empty() && held.front().group.end() <= reader->synced(); held.pop_front()) {
        if (Status s = Counted(*reader, epoch, held.front().group); !s.ok()) return s;
      }
      held.push_back({**group, std::string((*group)->payload)});
      held.back().group.payload = held.back().payload;
    }
    for (const Held& h : held) {
      Status s = Copied(*reader, h.group, claiming);
      if (!s.ok()) return s;
    }
    return {};
  }

  // Starts with the digest that the seal of the first log of the history names.
  void Start(uint64_t run_id) {
    history_.run_id = run_id;
    history_.seal.digest = run_id;
  }

  History& history() { return history_; }

 private:
  std::string Path(uint32_t epoch) const { return folder_ + "/" + LogName(epoch); }

  Status Counted(const LogReader& reader, uint32_t epoch, const LogGroup& group) {
    std::string_view left = group.payload;
    for (uint32_t i = 0; i < group.header.records; ++i) {
      const uint64_t at = group.end() - left.size();
      const size_t before = left.size();
      const Result<job::DecodedRecord> decoded = job::DecodeRecord(left);
      if (!decoded.ok()) return reader.Corrupt(at, decoded.error().message);
      if (const auto* seal = std::get_if<job::SealRecord>(&decoded->record)) {
        if (Status s = CheckSeal(reader, at, *seal); !s.ok()) return s;
      }
      const job::Place place{epoch, at, static_cast<uint32_t>(before - left.size())};
      if (Status s = Visit(*decoded, place); !s.ok()) return s;
    }
    if (!left.empty()) return reader.Corrupt(group.offset, "a group holds more than its records");
    history_.seal = {epoch, group.end(), ExtendDigest(history_.seal.digest, group.header.checksum)};
    return {};
  }

  Status Copied(const LogReader& reader, const LogGroup& group, uint32_t claiming) {
    std::string_view left = group.payload;
    for (uint32_t i = 0; i < group.header.records; ++i) {
      const uint64_t at = group.end() - left.size();
      const std::string_view encoded = left;
      const Result<job::DecodedRecord> decoded = job::DecodeRecord(left);
      if (!decoded.ok()) return reader.Corrupt(at, decoded.error().message);
      // The seal of a predecessor whose first group may get lost: the claiming epoch takes its
      // place in the chain, with the history that it sealed.
      if (const auto* seal = std::get_if<job::SealRecord>(&decoded->record)) {
        if (Status s = CheckSeal(reader, at, *seal); !s.ok()) return s;
        continue;
      }
      const size_t size = encoded.size() - left.size();
      const uint64_t copy = kCopiedAt + history_.copied.size();
      history_.copied.append(encoded.substr(0, size));
      ++history_.copied_records;
      if (kSealSize + history_.copied.size() > kMaxGroupPayload) {
        return reader.Corrupt(at, "more records lie beyond the durable ones than one flush writes");
      }
      const job::Place place{claiming, copy, static_cast<uint32_t>(size)};
      if (Status s = Visit(*decoded, place); !s.ok()) return s;
    }
    if (!left.empty()) return reader.Corrupt(group.offset, "a group holds more than its records");
    return {};
  }

  // What a seal counts must be what was replayed before it.
  Status CheckSeal(const LogReader& reader, uint64_t at, const job::SealRecord& seal) const {
    const job::SealRecord& replayed = history_.seal;
    if (seal.predecessor != replayed.predecessor || seal.length != replayed.length ||
        seal.digest != replayed.digest) {
      return reader.Corrupt(
          at, fmt::format("this seal does not fit the {} bytes of epoch {} that it counts",
                          seal.length, seal.predecessor));
    }
    return {};
  }

  Status Visit(const job::DecodedRecord& decoded, const job::Place& place) {
    history_.has_settings |= job::TypeOf(decoded.record) == job::RecordType::kSettings;
    job::Place rows;
    if (const size_t offset = decoded.rows_offset; offset != 0) {
      rows = {place.epoch, place.offset + offset, place.length - static_cast<uint32_t>(offset)};
    }
    return visit_(decoded.record, place, rows);
  }

  const Files& files_;
  const std::string& folder_;
  const Ledger::Visitor& visit_;
  History history_;  // so far
};

}  // namespace

Result<History> ReplayHistory(const Files& files, const std::string& epochs_folder, uint32_t epoch,
                              uint64_t run_id, const Ledger::Visitor& visit) {
  Replay replay(files, epochs_folder, visit);
  replay.Start(run_id);
  std::optional<job::SealRecord> seal;
  uint32_t predecessor = epoch;
  while (!seal && --predecessor > 0) {
    const Result<Peeked> peeked = Peek(files, epochs_folder, predecessor);
    if (!peeked.ok()) return peeked.error();
    seal = peeked->seal;
  }
  if (!seal) return std::move(replay.history());

  std::vector<job::SealRecord> chain;  // newest first
  for (; seal->predecessor != 0;) {
    chain.push_back(*seal);
    const Result<Peeked> peeked = Peek(files, epochs_folder, seal->predecessor);
    if (!peeked.ok()) return peeked.error();
    if (!peeked->seal) {
      return Error{Code::kCorrupt, fmt::format("{}/{} at {}: the seal that a later epoch counts is "
                                               "not there: {}",
                                               epochs_folder, LogName(seal->predecessor),
                                               kLogHeaderSize, kDamagedMend)};
    }
    seal = peeked->seal;
  }
  replay.Start(seal->digest);
  for (auto link = chain.rbegin(); link != chain.rend(); ++link) {
    if (Status s = replay.SealedPart(link->predecessor, link->length); !s.ok()) return s.error();
  }
  if (Status s = replay.OpenPart(predecessor, epoch); !s.ok()) return s.error();
  return std::move(replay.history());
}

Result<std::optional<uint64_t>> RunIdBelow(const Files& files, const std::string& epochs_folder,
                                           uint32_t epoch) {
  while (--epoch > 0) {
    const Result<Peeked> peeked = Peek(files, epochs_folder, epoch);
    if (!peeked.ok()) return peeked.error();
    // An Overwrite names a new run id in its seal, after the header was written.
    if (peeked->seal && peeked->seal->predecessor == 0) return std::optional(peeked->seal->digest);
    if (peeked->header) return std::optional(peeked->header->run_id);
  }
  return std::optional<uint64_t>();
}

}  // namespace parallelrun::ledger
