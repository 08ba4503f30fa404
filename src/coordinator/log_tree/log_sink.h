// LogSink writes what nodes upload into the job's log tree. Paths come from nodes, so they are
// hostile: a node writes below its own folders only, and no link is ever followed. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "coordinator/log_tree/log_folder.h"

namespace parallelrun::coordinator {

class LogSink {
 public:
  // `root` is the log folder; made if missing.
  static Result<LogSink> Open(Files& files, const std::string& root);
  const LogFolder& folder() const { return folder_; }

  // True when `node` may write this path (docs/coordinator-api.md lists the folders). Pure.
  static bool Allowed(uint32_t node, const std::vector<std::string>& segments);

  // Writes `bytes` at `offset` of the file that `segments` name, making it and its folders.
  // kPermission when the path is not the node's or leads through a link.
  // `truncate`: the file starts anew with these bytes.
  Status Write(uint32_t node, const std::vector<std::string>& segments, uint64_t offset,
               std::string_view bytes, bool truncate = false);

 private:
  explicit LogSink(LogFolder folder) : folder_(std::move(folder)) {}
  LogFolder folder_;
};

}  // namespace parallelrun::coordinator
