#include "job/work.h"

#define XXH_STATIC_LINKING_ONLY  // the streaming state, on the stack
#include <xxhash.h>

#include <cassert>
#include <cstring>

#include "base/bytes.h"

namespace parallelrun {
namespace {

constexpr uint8_t kWorkOfFiles = 1;
constexpr uint8_t kWorkOfSlice = 2;
constexpr size_t kAttemptsOffset = 2;
constexpr size_t kAttemptsEnd = kAttemptsOffset + sizeof(uint16_t);

void PutStamp(Encoder& to, const FileStamp& stamp) {
  to.U64(stamp.size);
  to.I64(stamp.mtime_ns);
}

void PutHead(Encoder& to, uint8_t kind, BatchId id, uint64_t first_item, uint32_t items) {
  to.U8(kind);
  to.U8(0);
  to.U16(0);  // failed attempts
  to.U64(id);
  to.U64(first_item);
  to.U32(items);
  to.Text("");  // context
}

}  // namespace

Result<WorkMaker> WorkMaker::FromRecord(std::string encoded) {
  WorkMaker maker;
  maker.encoded_ = std::make_unique<std::string>(std::move(encoded));
  std::string_view bytes = *maker.encoded_;
  Result<DecodedRecord> decoded = DecodeRecord(bytes);
  if (!decoded.ok()) return decoded.error();
  auto* chunk = std::get_if<PlanChunkRecord>(&decoded->record);
  if (chunk == nullptr || !bytes.empty()) {
    return Error{Code::kCorrupt, "a plan chunk was expected, but the record is another one"};
  }
  maker.chunk_ = std::move(*chunk);
  if (const auto* files = std::get_if<FilesChunk>(&maker.chunk_.content)) {
    maker.name_starts_.reserve(files->stamps.size());
    maker.name_starts_.push_back(0);
    for (size_t at = files->names.find('\0'); at != std::string_view::npos;
         at = files->names.find('\0', at + 1)) {
      maker.name_starts_.push_back(static_cast<uint32_t>(at + 1));
    }
  } else {
    uint64_t rows = 0;
    for (const Slice& slice : std::get<TabularChunk>(maker.chunk_.content).slices) {
      maker.row_starts_.push_back(rows);
      rows += slice.rows;
    }
  }
  return maker;
}

std::string WorkMaker::Make(uint32_t index) const {
  assert(index < chunk_.Batches());
  const uint32_t items = chunk_.ItemsOf(index);
  const BatchId id = chunk_.first + index;
  std::string work;
  Encoder to(work);
  if (const auto* files = std::get_if<FilesChunk>(&chunk_.content)) {
    const size_t begin = size_t{index} * files->files_per_batch;
    const size_t end = begin + items;
    const size_t names_begin = name_starts_[begin];
    // The NUL before the next name belongs to neither.
    const size_t names_end =
        end < name_starts_.size() ? name_starts_[end] - 1 : files->names.size();
    PutHead(to, kWorkOfFiles, id, chunk_.first_item + begin, items);
    to.Text(files->root);
    to.Text(files->names.substr(names_begin, names_end - names_begin));
    for (size_t i = begin; i < end; ++i) PutStamp(to, files->stamps[i]);
    return work;
  }
  const auto& tabular = std::get<TabularChunk>(chunk_.content);
  const Slice& slice = tabular.slices[index];
  PutHead(to, kWorkOfSlice, id, chunk_.first_item + row_starts_[index], items);
  to.Text(tabular.path);
  to.U64(slice.offset);
  to.U64(slice.length);
  to.Text(tabular.header);
  PutStamp(to, tabular.stamp);
  to.Text(tabular.format);
  return work;
}

void SetWorkAttempts(std::string& work, uint16_t failed_attempts) {
  assert(work.size() >= kAttemptsEnd);
  std::memcpy(work.data() + kAttemptsOffset, &failed_attempts, sizeof(failed_attempts));
}

uint64_t WorkDigest(const std::string& work) {
  assert(work.size() >= kAttemptsEnd);
  char head[kAttemptsEnd] = {};
  std::memcpy(head, work.data(), kAttemptsOffset);
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, head, sizeof(head));
  XXH3_64bits_update(&state, work.data() + kAttemptsEnd, work.size() - kAttemptsEnd);
  return XXH3_64bits_digest(&state);
}

}  // namespace parallelrun
