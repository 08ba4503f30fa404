#include "agent/logs/log_version.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <string>

namespace parallelrun {
namespace {

constexpr uint64_t kBlock = uint64_t{32} << 10;
// A second lies between two: more than the coarsest file system's step, 2 s.
constexpr uint32_t kLooksToSettle = 4;

int64_t ChangedNs(const struct stat& info) {
  return static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// Of the first and last block of the first `size` bytes; of fewer where there are fewer by now.
uint64_t Digest(int fd, uint64_t size) {
  std::string bytes(std::min(size, 2 * kBlock), '\0');
  const size_t first = std::min<size_t>(bytes.size(), kBlock);
  const size_t last = bytes.size() - first;
  ssize_t n = pread(fd, bytes.data(), first, 0);
  if (last > 0) n += pread(fd, bytes.data() + first, last, static_cast<off_t>(size - last));
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace

LogVersion::LogVersion(int fd, const struct stat& info)
    : inode_(info.st_ino),
      size_(static_cast<uint64_t>(info.st_size)),
      changed_ns_(ChangedNs(info)),
      digest_(Digest(fd, size_)) {}

void LogVersion::CountLooks(const LogVersion& before) {
  const bool same =
      inode_ == before.inode_ && size_ == before.size_ && changed_ns_ == before.changed_ns_;
  looks_ = same ? before.looks_ + 1 : 1;
}

bool LogVersion::Settled(const struct stat& info) const {
  return looks_ >= kLooksToSettle && inode_ == info.st_ino &&
         size_ == static_cast<uint64_t>(info.st_size) && changed_ns_ == ChangedNs(info);
}

bool LogVersion::ContinuedBy(int fd, const struct stat& info) const {
  return inode_ == info.st_ino && size_ <= static_cast<uint64_t>(info.st_size) &&
         digest_ == Digest(fd, size_);
}

}  // namespace parallelrun
