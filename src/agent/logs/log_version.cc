#include "agent/logs/log_version.h"

#include <xxhash.h>

#include <algorithm>
#include <string>

namespace parallelrun::agent {
namespace {

constexpr uint64_t kBlock = uint64_t{32} << 10;
// A second lies between two: more than the coarsest file system's step, 2 s.
constexpr uint32_t kLooksToSettle = 4;

// Of the first and last block of the first `size` bytes; of fewer where there are fewer by now.
Result<uint64_t> Digest(const File& file, uint64_t size) {
  const size_t first = std::min<uint64_t>(size, kBlock);
  const size_t last = std::min<uint64_t>(size - first, kBlock);
  Result<std::string> bytes = file.ReadAt(0, first);
  if (!bytes.ok()) return bytes.error();
  if (last > 0) {
    const Result<std::string> end = file.ReadAt(size - last, last);
    if (!end.ok()) return end.error();
    *bytes += *end;
  }
  return uint64_t{XXH3_64bits(bytes->data(), bytes->size())};
}

}  // namespace

Result<LogVersion> LogVersion::Of(const File& file, const FileFacts& facts) {
  const Result<uint64_t> digest = Digest(file, facts.size);
  if (!digest.ok()) return digest.error();
  LogVersion version;
  version.id_ = facts.id;
  version.size_ = facts.size;
  version.changed_ns_ = facts.modified_ns;
  version.digest_ = *digest;
  return version;
}

bool LogVersion::IsOf(const FileFacts& facts) const {
  return id_ == facts.id && size_ == facts.size && changed_ns_ == facts.modified_ns;
}

void LogVersion::CountLooks(const LogVersion& before) {
  const bool same = id_ == before.id_ && size_ == before.size_ && changed_ns_ == before.changed_ns_;
  looks_ = same ? before.looks_ + 1 : 1;
}

bool LogVersion::Settled(const FileFacts& facts) const {
  return looks_ >= kLooksToSettle && IsOf(facts);
}

Result<bool> LogVersion::ContinuedBy(const File& file, const FileFacts& facts) const {
  if (id_ != facts.id || size_ > facts.size) return false;
  const Result<uint64_t> now = Digest(file, size_);
  if (!now.ok()) return now.error();
  return digest_ == *now;
}

}  // namespace parallelrun::agent
