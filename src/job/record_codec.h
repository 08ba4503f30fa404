// The bytes of the ledger's records (docs/ledger.md). Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "job/records.h"

namespace parallelrun::job {

// Stored: never renumber.
enum class RecordType : uint8_t {
  kSeal = 1,
  kSettings = 2,
  kPlanChunk = 3,
  kPlanEnd = 4,
  kRows = 5,
  kResult = 6,
  kFailed = 7,
  kLost = 8,
  kVerdict = 9,
  kPublished = 10,
  kHeader = 11,
  kStarted = 12,
  kTypes = 13,
  kCompany = 14,
  kSkipped = 15,
  kShutdown = 16,
  kAgain = 17,
};

RecordType TypeOf(const Record& record);

// Offset within an encoded record of this type at which its rows begin; 0: it has none.
size_t RowsOffset(RecordType type);

// So many bytes in front of the rows of a result stands how many these are: u32, little-endian.
inline constexpr uint32_t kRowCountSize = 4;

// Appends the record with its type and length. Returns the offset within the appended bytes at
// which the rows of a RowsRecord or ResultRecord begin (0 for the others).
size_t EncodeRecord(const Record& record, std::string& out);

// One record and the place of its rows within `bytes`.
struct DecodedRecord {
  Record record;
  size_t rows_offset = 0;
};

// Decodes the record at the front of `bytes` and removes it. kCorrupt when it is not whole, or of
// a type that is not known and must be; the views in the result point into `bytes`.
Result<DecodedRecord> DecodeRecord(std::string_view& bytes);

}  // namespace parallelrun::job
