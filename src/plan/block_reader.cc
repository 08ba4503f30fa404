#include "plan/block_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/escape.h"

namespace parallelrun::plan {

Result<std::unique_ptr<BlockReader>> BlockReader::Open(store::Store& store, const std::string& name,
                                                       std::stop_token stop) {
  auto object = store.Open(name);
  if (!object.ok()) return object.error();
  return std::unique_ptr<BlockReader>(
      new BlockReader(std::move(*object), store.Location(name), std::move(stop)));
}

BlockReader::BlockReader(std::unique_ptr<store::Object> object, std::string path,
                         std::stop_token stop)
    : object_(std::move(object)),
      path_(std::move(path)),
      stop_(std::move(stop)),
      buffer_(new char[kBufferSize]) {}

Status BlockReader::Fill() {
  if (stop_.stop_requested()) {
    return Error{Code::kUnavailable,
                 Printable(path_, 4096) + " is not read to its end: the job ended"};
  }
  // Fewer bytes: it was cut short; whoever reads the slices will find out.
  const Result<size_t> got = object_->ReadAt(offset(), {buffer_.get(), kBufferSize});
  if (!got.ok()) return got.error();
  Show({buffer_.get(), *got});
  return {};
}

Result<std::string> BlockReader::ReadAt(uint64_t offset, size_t size) const {
  const uint64_t there = found().size - std::min(offset, found().size);
  std::string bytes(std::min<uint64_t>(size, there), '\0');
  const Result<size_t> got = object_->ReadAt(offset, bytes);
  if (!got.ok()) return got.error();
  if (*got == size) return bytes;
  return Error{Code::kInvalid,
               fmt::format("{} became shorter while it was read", Printable(path_, 4096))};
}

}  // namespace parallelrun::plan
