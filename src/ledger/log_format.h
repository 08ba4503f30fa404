// The bytes of an epoch's log (docs/ledger.md, "A log"): header, groups, running digest, names.
// Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::ledger {

inline constexpr uint32_t kLogFormat = 2;        // that is written
inline constexpr uint32_t kOldestLogFormat = 1;  // that is read
inline constexpr size_t kLogHeaderSize = 64;
inline constexpr size_t kGroupHeaderSize = 24;
inline constexpr size_t kMaxGroupPayload = size_t{64} << 20;
// One record, type and length included: leaves room for the seal beside it in a first group.
inline constexpr size_t kMaxRecordSize = kMaxGroupPayload - 1024;

struct LogHeader {
  uint32_t epoch = 0;
  uint64_t run_id = 0;
  uint64_t nonce = 0;
};

// Of kLogFormat, and with this program's version.
std::string EncodeLogHeader(const LogHeader& header);

// kCorrupt: not a header; kInvalid: of a format that this program does not know, named with the
// version that wrote it.
Result<LogHeader> DecodeLogHeader(std::string_view bytes);

struct GroupHeader {
  uint32_t length = 0;  // of the payload
  uint32_t records = 0;
  uint64_t synced = 0;  // length of the log known durable when the group was written
  uint64_t checksum = 0;
};

GroupHeader DecodeGroupHeader(std::string_view bytes);

// Checksum of the group at `offset`; `head` is its first 16 bytes.
uint64_t GroupChecksum(const LogHeader& log, uint64_t offset, std::string_view head,
                       std::string_view payload);

// Fills in the header of the whole group `group`, of which the payload is there already.
void WriteGroupHeader(const LogHeader& log, uint64_t offset, uint32_t records, uint64_t synced,
                      char* group, size_t size);

// The running digest after one more group.
uint64_t ExtendDigest(uint64_t digest, uint64_t group_checksum);

// "000001.log"; nothing for a name that is not the one of an epoch.
std::string LogName(uint32_t epoch);
std::optional<uint32_t> EpochOfLogName(std::string_view name);

}  // namespace parallelrun::ledger
