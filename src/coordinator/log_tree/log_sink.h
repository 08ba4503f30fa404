// LogSink writes what nodes upload into the job's log tree. Paths come from nodes, so they are
// hostile: a node writes below its own folders only, and no link is ever followed. Not thread-safe.
//
// Of logs that go to a store it keeps what comes in segments too (log_spool.h), and in the tree no
// more than so many bytes of it: a file that there is no room for, or that is not whole there,
// goes.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/log_tree/log_segment.h"
#include "coordinator/log_tree/log_spool.h"

namespace parallelrun::coordinator {

class LogSink {
 public:
  // `root` is the log folder; made if missing.
  static Result<LogSink> Open(Files& files, const std::string& root);
  const LogFolder& folder() const { return folder_; }

  // True when `node` may write this path (docs/coordinator-api.md lists the folders). Pure.
  static bool Allowed(uint32_t node, const std::vector<std::string>& segments);

  static constexpr uint64_t kMostHere = uint64_t{1} << 30;
  // Before the first upload.
  void KeepSegments(std::shared_ptr<LogSpool> spool, uint64_t most_here = kMostHere);

  // Writes `bytes` at `offset` of the file that `segments` name, making it and its folders.
  // kPermission when the path is not the node's or leads through a link.
  // `truncate`: the file starts anew with these bytes.
  Status Write(uint32_t node, const std::vector<std::string>& segments, uint64_t offset,
               std::string_view bytes, bool truncate = false, Instant now = {});

 private:
  explicit LogSink(LogFolder folder) : folder_(std::move(folder)) {}
  Status Keep(uint32_t node, const LogRecord& record, Instant now);

  LogFolder folder_;
  std::shared_ptr<LogSpool> spool_;
  uint64_t most_here_ = kMostHere;
  uint64_t here_ = 0;            // bytes of what nodes wrote
  std::set<std::string> apart_;  // files that are not here
};

}  // namespace parallelrun::coordinator
