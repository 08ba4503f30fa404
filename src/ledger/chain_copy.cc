#include "ledger/chain_copy.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace parallelrun::ledger {

ChainCopy::ChainCopy(Files& files, const std::string& path, uint64_t most) : most_(most) {
  if (path.empty()) return;
  Result<std::unique_ptr<File>> file = files.OpenOrCreate(path);
  Status emptied = file.ok() ? (*file)->Cut(0) : Status(file.error());
  if (!emptied.ok()) {
    spdlog::warn("no copy of the state is kept: {}", emptied.error().message);
    return;
  }
  file_ = std::move(*file);
}

// What was copied stays of use where the rest has no room.
void ChainCopy::Add(uint64_t offset, std::string_view bytes) {
  if (!file_ || full_) return;
  if (!begin_) begin_ = offset;
  const uint64_t size = size_.load(std::memory_order_relaxed);
  full_ = size + bytes.size() > most_;
  if (full_) return;
  Status written = file_->WriteAt(size, bytes);
  if (!written.ok()) {
    full_ = true;
    spdlog::warn("the copy of the state ends here, what comes is read from its store: {}",
                 written.error().message);
    return;
  }
  size_.store(size + bytes.size(), std::memory_order_release);
}

std::optional<std::string> ChainCopy::Read(uint64_t offset, size_t size) const {
  const uint64_t copied = size_.load(std::memory_order_acquire);
  if (copied == 0 || offset < *begin_ || offset - *begin_ + size > copied) return std::nullopt;
  Result<std::string> bytes = file_->ReadAt(offset - *begin_, size);
  if (!bytes.ok() || bytes->size() < size) return std::nullopt;
  return std::move(*bytes);
}

}  // namespace parallelrun::ledger
