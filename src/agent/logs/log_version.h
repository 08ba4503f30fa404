// Tells a file that was appended to from one that was written anew, without reading it again: by
// its inode, its size, its time of change, and the first and last 32 KiB of what it held.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>

namespace parallelrun::agent {

class LogVersion {
 public:
  LogVersion() = default;  // of a file that was not looked at yet
  // `fd` is open for reading. Look before the bytes are read that this stands for: then what is
  // written meanwhile shows at the next look.
  LogVersion(int fd, const struct stat& info);

  bool known() const { return inode_ != 0; }
  // It was the same at so many looks that it need not be opened: file systems tell times of change
  // in steps, so two writes may have the same one, but not when seconds lie between them.
  bool Settled(const struct stat& info) const;
  // What `fd` holds now begins with this version.
  bool ContinuedBy(int fd, const struct stat& info) const;
  // Follows `before`, from which it may differ.
  void CountLooks(const LogVersion& before);

 private:
  uint64_t inode_ = 0;
  uint64_t size_ = 0;
  int64_t changed_ns_ = 0;
  std::optional<uint64_t> digest_;  // none: it could not be read
  uint32_t looks_ = 1;
};

}  // namespace parallelrun::agent
