// A segment: what the logs of a node have gained in some seconds, as a small object of a store,
// which cannot be appended to (docs/logs.md). Records one after the other, each a line and the
// bytes:
//
//     log <offset> <bytes> at|anew <name>
//
// Pure. A segment that is read may end in the midst of a record, whose node was never told that it
// is kept; and it may be anything, as it lies where others write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::coordinator {

struct LogRecord {
  std::string_view name;  // below the log folder; without a line break
  uint64_t offset = 0;
  bool anew = false;  // the file begins with these bytes: what it held is gone
  std::string_view bytes;
};

std::string EncodeLogRecord(const LogRecord& record);

// Calls `each` for the whole records in their order; its error ends that. Says how many bytes they
// take: what follows is no whole record.
Result<size_t> ReadLogRecords(std::string_view segment,
                              const std::function<Status(const LogRecord&)>& each);

}  // namespace parallelrun::coordinator
