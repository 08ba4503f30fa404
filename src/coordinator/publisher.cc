#include "coordinator/publisher.h"

#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/mutation.h"

namespace parallelrun {
namespace {

constexpr size_t kBlock = size_t{1} << 20;
constexpr uint64_t kSpareBytes = uint64_t{1} << 20;  // left free beside the output

struct DigestFree {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Gathers rows into blocks, so that small mini-batches do not cost a write each.
class BlockWriter {
 public:
  explicit BlockWriter(File& file) : file_(file), digest_(EVP_MD_CTX_new()) {
    EVP_DigestInit_ex(digest_.get(), EVP_sha256(), nullptr);
  }
  Status Add(std::string_view rows) {
    buffer_.append(rows);
    return buffer_.size() < kBlock ? Status() : Flush();
  }
  Status Flush() {
    EVP_DigestUpdate(digest_.get(), buffer_.data(), buffer_.size());
    const Status written = file_.WriteAt(offset_, buffer_);
    offset_ += buffer_.size();
    buffer_.clear();
    return written;
  }
  uint64_t size() const { return offset_; }
  std::array<uint8_t, 32> Digest() {
    std::array<uint8_t, 32> digest{};
    EVP_DigestFinal_ex(digest_.get(), digest.data(), nullptr);
    return digest;
  }

 private:
  File& file_;
  std::unique_ptr<EVP_MD_CTX, DigestFree> digest_;
  std::string buffer_;
  uint64_t offset_ = 0;
};

// Reads rows of the ledger, neighbours in one read: in mini-batch order most rows lie close
// together.
class RowReader {
 public:
  explicit RowReader(const Ledger& ledger) : ledger_(ledger) {}
  Result<std::string_view> Read(const Place& place) {
    const bool inside = place.epoch == window_.epoch && place.offset >= window_.offset &&
                        place.offset + place.length <= window_.offset + bytes_.size();
    if (!inside) {
      const auto length = std::max<size_t>(place.length, std::min(kBlock, size_t{64} << 10));
      // A window near the end of a log is cut short by the ledger; only our rows must be there.
      Result<std::string> read =
          ledger_.Read({place.epoch, place.offset, static_cast<uint32_t>(length)});
      if (!read.ok() && length > place.length) read = ledger_.Read(place);
      if (!read.ok()) return read.error();
      bytes_ = std::move(*read);
      window_ = place;
      if (bytes_.size() < place.length) {
        return Error{Code::kCorrupt,
                     fmt::format("the ledger of epoch {} ends within rows at offset {}",
                                 place.epoch, place.offset)};
      }
    }
    return std::string_view(bytes_).substr(place.offset - window_.offset, place.length);
  }

 private:
  const Ledger& ledger_;
  Place window_;
  std::string bytes_;
};

std::vector<BatchId> InOrder(const JobState& state, RowOrder order) {
  std::vector<BatchId> ids;
  const std::vector<MiniBatch>& batches = state.batches();
  for (BatchId id = 0; id < batches.size(); ++id) {
    if (batches[id].state == MiniBatch::State::kSucceeded) ids.push_back(id);
  }
  if (order == RowOrder::kCompletion) {
    std::sort(ids.begin(), ids.end(), [&](BatchId a, BatchId b) {
      const Place& x = batches[a].rows;
      const Place& y = batches[b].rows;
      return std::tie(x.epoch, x.offset) < std::tie(y.epoch, y.offset);
    });
  }
  return ids;
}

}  // namespace

Result<Published> PublishOutput(Files& files, const Ledger& ledger, const JobState& state,
                                RowOrder order, const std::string& output_path) {
  const std::string folder = std::filesystem::path(output_path).parent_path();
  const std::vector<BatchId> ids = InOrder(state, order);
  uint64_t total = state.header().size();
  for (const BatchId id : ids) {
    for (const Place& place : state.RowsOf(id)) total += place.length;
  }
  const Result<uint64_t> room = files.FreeSpace(folder);
  if (room.ok() && *room < total + kSpareBytes) {
    return Error{Code::kNoSpace,
                 fmt::format("{}: {} bytes are free, the output needs {}", folder, *room, total)};
  }

  if (PARALLELRUN_MUTATED(kRenameWithoutToken))
    (void)files.CreateExclusive(ledger.token_path()).ok();
  Result<std::unique_ptr<File>> token = files.Open(ledger.token_path());
  if (!token.ok()) {
    if (token.error().code == Code::kNotFound) {
      return Error{Code::kStale, ledger.token_path() + " is gone: a newer coordinator took over"};
    }
    return token.error();
  }
  BlockWriter writer(**token);
  if (const Status added = writer.Add(state.header()); !added.ok()) return added.error();
  RowReader reader(ledger);
  for (const BatchId id : ids) {
    for (const Place& place : state.RowsOf(id)) {
      const Result<std::string_view> rows = reader.Read(place);
      if (!rows.ok()) return rows.error();
      if (const Status added = writer.Add(*rows); !added.ok()) return added.error();
    }
  }
  if (const Status flushed = writer.Flush(); !flushed.ok()) return flushed.error();
  if (const Status synced = (*token)->Sync(); !synced.ok()) return synced.error();
  token->reset();
  if (const Status renamed = files.Rename(ledger.token_path(), output_path); !renamed.ok()) {
    if (renamed.error().code == Code::kNotFound) {
      return Error{Code::kStale, ledger.token_path() + " is gone: a newer coordinator took over"};
    }
    return renamed.error();
  }
  if (const Status synced = files.SyncFolder(folder); !synced.ok()) return synced.error();
  return Published{output_path, writer.size(), state.counts().rows, writer.Digest()};
}

}  // namespace parallelrun
