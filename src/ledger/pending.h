// Records on their way to the log, laid out as the bytes that will be written. They gather in
// groups of about 1 MiB, and groups in rounds: what one pwrite and one sync make durable. In a
// chain a round is a link, and one group.
//
// A round of a log is at most 32 MiB, or a single record: the next epoch must be able to copy all
// of it in one group. Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/record_codec.h"
#include "job/records.h"
#include "ledger/ledger.h"
#include "ledger/log_format.h"

namespace parallelrun::ledger {

// Where there is room for headers, and how much goes together. As in a log.
struct Layout {
  size_t round_header = 0;  // in front of its groups
  size_t group_header = kGroupHeaderSize;
  size_t group_target = size_t{1} << 20;  // bytes; then another group begins
  size_t round_limit = size_t{32} << 20;  // bytes, but for a single record
};

struct Round {
  struct Group {
    size_t start = 0;  // in `bytes`
    uint32_t records = 0;
  };
  uint64_t offset = 0;  // in the log
  std::string bytes;    // headers are still zero
  std::vector<Group> groups;
  bool ends_job = true;  // only records that a job ends with
  bool urgent = false;   // some record that what comes next waits for

  uint64_t end() const { return offset + bytes.size(); }
};

class Pending {
 public:
  // The first round begins at `offset` of the log.
  explicit Pending(uint64_t offset, const Layout& layout = {}) : layout_(layout), end_(offset) {}

  struct Added {
    uint64_t offset = 0;  // of the encoded record in the log
    uint32_t length = 0;
  };
  // kInvalid: the record is longer than kMaxRecordSize; Take then fails for ever.
  Result<Added> Add(const job::Record& record);
  Result<Added> AddEncoded(std::string_view encoded);
  // Several encoded records that must become durable together: one group of their own.
  Result<Added> AddGroup(std::string_view encoded, uint32_t records);

  // Of all rounds so far.
  struct Waiting {
    size_t bytes = 0;
    bool urgent = false;
  };
  Waiting waiting() const;
  // All rounds so far, in order; later records go to new ones.
  Result<std::deque<Round>> Take();
  // Gives the memory of a written round back.
  void Recycle(Round round);

 private:
  template <typename Put>
  Result<Added> Insert(uint32_t records, std::optional<job::RecordType> type, size_t limit,
                       Put put);
  void StartRound();
  void StartGroup();

  const Layout layout_;
  mutable std::mutex mutex_;
  std::deque<Round> rounds_;  // the last one is open
  uint64_t end_;              // of the last round
  std::string spare_;
  std::optional<Error> refused_;
};

// A record of `epoch` as Ledger::Append gives it.
Ledger::Appended AppendedAt(uint32_t epoch, const Result<Pending::Added>& added,
                            job::RecordType type);

}  // namespace parallelrun::ledger
