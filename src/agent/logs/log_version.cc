#include "agent/logs/log_version.h"

#include <xxhash.h>

#include <algorithm>
#include <string>

#include "base/small_file.h"

namespace parallelrun::agent {
namespace {

constexpr uint64_t kBlock = uint64_t{32} << 10;
// A second lies between two: more than the coarsest file system's step, 2 s.
constexpr uint32_t kLooksToSettle = 4;

int64_t ChangedNs(const struct stat& info) {
  return static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// Of the first and last block of the first `size` bytes; of fewer where there are fewer by now.
// Nothing where it cannot be read.
std::optional<uint64_t> Digest(int fd, uint64_t size) {
  const size_t first = std::min<uint64_t>(size, kBlock);
  const size_t last = std::min<uint64_t>(size - first, kBlock);
  Result<std::string> bytes = ReadRange(fd, 0, first, "a log");
  const Result<std::string> end = ReadRange(fd, size - last, last, "a log");
  if (!bytes.ok() || !end.ok()) return std::nullopt;
  *bytes += *end;
  return XXH3_64bits(bytes->data(), bytes->size());
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
  if (inode_ != info.st_ino || size_ > static_cast<uint64_t>(info.st_size)) return false;
  const std::optional<uint64_t> now = Digest(fd, size_);
  // What cannot be read now has not been seen to be another one: to send it all anew would help
  // nobody.
  return !digest_ || !now || *digest_ == *now;
}

}  // namespace parallelrun::agent
