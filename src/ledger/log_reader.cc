#include "ledger/log_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace parallelrun::ledger {
namespace {

constexpr size_t kSmallestRecord = 5;

// What every group has, whatever its payload. Cheap: the search for later groups calls it for
// each byte.
bool Plausible(const GroupHeader& header, uint64_t offset, uint64_t size) {
  return header.synced >= kLogHeaderSize && header.synced <= offset &&
         header.length <= kMaxGroupPayload && header.length <= size - offset - kGroupHeaderSize &&
         header.records <= header.length / kSmallestRecord;
}

}  // namespace

Result<LogReader> LogReader::Open(const Files& files, const std::string& path, uint32_t epoch,
                                  std::optional<uint64_t> sealed_length, size_t block_size) {
  LogReader reader;
  reader.path_ = path;
  reader.block_size_ = block_size;
  Result<std::unique_ptr<File>> file = files.OpenRead(path);
  if (!file.ok()) return file.error();
  reader.file_ = std::move(*file);
  const Result<uint64_t> size = reader.file_->Size();
  if (!size.ok()) return size.error();
  reader.size_ = *size;
  if (sealed_length) {
    if (*size < *sealed_length) {
      return reader.Corrupt(
          *size, fmt::format("the log ends here, but {} bytes of it are sealed", *sealed_length));
    }
    reader.sealed_ = true;
    reader.size_ = *sealed_length;
  }
  // The header is durable before the first group is written, so that only a log without groups
  // may have a bad one.
  const bool may_be_torn = !sealed_length && *size <= kLogHeaderSize;
  const Result<std::string_view> bytes =
      reader.Bytes(0, static_cast<size_t>(std::min<uint64_t>(*size, kLogHeaderSize)));
  if (!bytes.ok()) return bytes.error();
  const Result<LogHeader> header = DecodeLogHeader(*bytes);
  if (!header.ok()) {
    if (header.error().code == Code::kInvalid) return header.error().With(path);
    if (may_be_torn) return reader;
    return reader.Corrupt(0, header.error().message);
  }
  if (header->epoch != epoch) {
    return reader.Corrupt(
        0, fmt::format("this is the log of epoch {} under another name", header->epoch));
  }
  reader.header_ = *header;
  reader.position_ = reader.synced_ = kLogHeaderSize;
  return reader;
}

Result<std::optional<LogGroup>> LogReader::Next() {
  if (!header_ || position_ >= size_) return std::optional<LogGroup>();
  const uint64_t at = position_;
  Result<std::optional<LogGroup>> group = GroupAt(at);
  if (!group.ok()) return group;
  if (!*group) {
    bool durable = sealed_;
    if (!durable) {
      const Result<bool> beyond = DurableBeyond(at);
      if (!beyond.ok()) return beyond.error();
      durable = *beyond;
    }
    // Look again at the file itself: a stale coordinator may have been in the middle of this
    // write, and its later marks were found only after the group had become whole.
    block_.clear();
    group = GroupAt(at);
    if (!group.ok()) return group;
    if (!*group) {
      if (durable) {
        return Corrupt(at, "a group of records is damaged that had been written durably");
      }
      size_ = at;
      return group;
    }
  }
  position_ = (*group)->end();
  synced_ = std::max(synced_, (*group)->header.synced);
  return group;
}

// Nothing when there is no whole group at `offset`.
Result<std::optional<LogGroup>> LogReader::GroupAt(uint64_t offset) {
  if (size_ - offset < kGroupHeaderSize) return std::optional<LogGroup>();
  Result<std::string_view> bytes = Bytes(offset, kGroupHeaderSize);
  if (!bytes.ok()) return bytes.error();
  const GroupHeader header = DecodeGroupHeader(*bytes);
  if (!Plausible(header, offset, size_)) return std::optional<LogGroup>();
  bytes = Bytes(offset, kGroupHeaderSize + header.length);
  if (!bytes.ok()) return bytes.error();
  const std::string_view payload = bytes->substr(kGroupHeaderSize);
  if (GroupChecksum(*header_, offset, bytes->substr(0, 16), payload) != header.checksum) {
    return std::optional<LogGroup>();
  }
  return std::optional(LogGroup{offset, header, payload});
}

// Whether a whole group after the bad one at `bad` says that the bad one had been durable. The
// length of the bad one is not to be trusted, so every offset is tried.
Result<bool> LogReader::DurableBeyond(uint64_t bad) {
  for (uint64_t at = bad + 1; at + kGroupHeaderSize <= size_; ++at) {
    const Result<std::string_view> bytes = Bytes(at, kGroupHeaderSize);
    if (!bytes.ok()) return bytes.error();
    const GroupHeader header = DecodeGroupHeader(*bytes);
    if (header.synced <= bad || !Plausible(header, at, size_)) continue;
    const Result<std::optional<LogGroup>> group = GroupAt(at);
    if (!group.ok()) return group.error();
    if (*group) return true;
  }
  return false;
}

// `size` bytes at `offset`, which lie below size_. Valid until the next call.
Result<std::string_view> LogReader::Bytes(uint64_t offset, size_t size) {
  const bool held = offset >= block_offset_ && offset + size <= block_offset_ + block_.size();
  if (!held) {
    const uint64_t wanted =
        std::min<uint64_t>(std::max(size, block_size_), std::max(size_, offset + size) - offset);
    Result<std::string> block = file_->ReadAt(offset, static_cast<size_t>(wanted));
    if (!block.ok()) return block.error();
    if (block->size() < wanted) {
      return Error{Code::kInternal,
                   fmt::format("read {}: only {} of {} bytes came at {}, though the file is longer",
                               path_, block->size(), wanted, offset)};
    }
    block_ = std::move(*block);
    block_offset_ = offset;
  }
  return std::string_view(block_).substr(static_cast<size_t>(offset - block_offset_), size);
}

Error LogReader::Corrupt(uint64_t offset, const std::string& what) const {
  return {Code::kCorrupt, fmt::format("{} at {}: {}: {}", path_, offset, what, kDamagedMend)};
}

}  // namespace parallelrun::ledger
