// Tells a file that was appended to from one that was written anew, without reading it again: by
// which file it is, its size, its time of change, and the first and last 32 KiB of what it held.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun::agent {

class LogVersion {
 public:
  LogVersion() = default;  // of a file that was not looked at yet
  // Look before the bytes are read that this stands for: then what is written meanwhile shows at
  // the next look. One that cannot be read has no version: nothing could be told from it later.
  static Result<LogVersion> Of(const File& file, const FileFacts& facts);

  bool known() const { return id_.number != 0; }
  // It was the same at so many looks that it need not be opened: file systems tell times of change
  // in steps, so two writes may have the same one, but not when seconds lie between them.
  bool Settled(const FileFacts& facts) const;
  // What `file` holds now begins with this version.
  Result<bool> ContinuedBy(const File& file, const FileFacts& facts) const;
  // Follows `before`, from which it may differ.
  void CountLooks(const LogVersion& before);

 private:
  bool IsOf(const FileFacts& facts) const;

  FileId id_;
  uint64_t size_ = 0;
  int64_t changed_ns_ = 0;
  uint64_t digest_ = 0;
  uint32_t looks_ = 1;
};

}  // namespace parallelrun::agent
