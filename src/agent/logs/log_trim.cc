#include "agent/logs/log_trim.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parallelrun::agent {
namespace {

constexpr uint64_t kStatBlock = 512;  // unit of st_blocks, whatever the file system's blocks are

}  // namespace

void TrimLog(int fd, uint64_t limit) {
  struct stat info {};
  if (fstat(fd, &info) != 0) return;
  const auto size = static_cast<uint64_t>(info.st_size);
  // Sizes first: what is not longer than the limit cannot take much more.
  if (size <= limit || static_cast<uint64_t>(info.st_blocks) * kStatBlock <= limit) return;
  // Whole blocks: half a block would be zeros and no hole.
  const auto cut =
      (info.st_size - static_cast<off_t>(limit / 2)) / info.st_blksize * info.st_blksize;
  if (cut <= 0) return;
  if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, cut) == 0) return;
  // The end of the truncation tells nothing new: the next look tries again.
  [[maybe_unused]] const int ignored = ftruncate(fd, 0);
}

uint64_t KeptFrom(int fd, uint64_t offset) {
  // An error is the end of the file, or a file system without holes.
  const off_t data = lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  return data < 0 ? offset : static_cast<uint64_t>(data);
}

}  // namespace parallelrun::agent
