// Reads the groups of one epoch's log in order, and tells corruption from the torn tail of a crash
// (docs/ledger.md, "Reading"). Reads in big blocks; memory is one block or one group. A log may be
// written to meanwhile by a stale coordinator: what it adds after Open is not seen.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "ledger/log_format.h"

namespace parallelrun::ledger {

// What to do about a log that is damaged, or was put back.
inline constexpr char kDamagedMend[] =
    "restore the state folder from a copy, or start the job from the beginning with another state "
    "folder";

struct LogGroup {
  uint64_t offset = 0;  // of the group in the log
  GroupHeader header;
  std::string_view payload;

  uint64_t payload_offset() const { return offset + kGroupHeaderSize; }
  uint64_t end() const { return payload_offset() + payload.size(); }
};

class LogReader {
 public:
  static constexpr size_t kBlockSize = size_t{4} << 20;

  // `sealed_length`: how many bytes of the log count, when a seal says so; they all must be whole
  // then, and no others are read. kNotFound: no such log; kCorrupt names file and offset;
  // kInvalid: a format not known.
  static Result<LogReader> Open(const Files& files, const std::string& path, uint32_t epoch,
                                std::optional<uint64_t> sealed_length,
                                size_t block_size = kBlockSize);

  // Nothing in a log whose coordinator ended before its header was durable.
  const std::optional<LogHeader>& header() const { return header_; }

  // The next group, or nothing at the end. The payload is valid until the next call.
  Result<std::optional<LogGroup>> Next();

  // Highest synced-up-to in the groups so far: below it a log is durable.
  uint64_t synced() const { return synced_; }
  // End of the last group so far.
  uint64_t position() const { return position_; }

  // kCorrupt at `offset` of this log.
  Error Corrupt(uint64_t offset, const std::string& what) const;

 private:
  LogReader() = default;
  Result<std::optional<LogGroup>> GroupAt(uint64_t offset);
  Result<std::string_view> Bytes(uint64_t offset, size_t size);
  Result<bool> DurableBeyond(uint64_t bad);

  std::string path_;
  std::unique_ptr<File> file_;
  std::optional<LogHeader> header_;
  bool sealed_ = false;
  uint64_t size_ = 0;  // of the part to read
  size_t block_size_ = 0;
  uint64_t position_ = 0;
  uint64_t synced_ = 0;
  std::string block_;
  uint64_t block_offset_ = 0;
};

}  // namespace parallelrun::ledger
