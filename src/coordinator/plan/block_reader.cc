#include "coordinator/plan/block_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/escape.h"

namespace parallelrun {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// What begins so is no text, whatever its name is; its rows would be read as rubbish.
Status CheckIsText(std::string_view begin, const std::string& path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kCompressed = {{
      {"\x1F\x8B", "gzip"},
      {"PK\x03\x04", "zip, as .xlsx is"},
      {"\x28\xB5\x2F\xFD", "zstd"},
      {"\xFD\x37zXZ", "xz"},
      {"BZh91AY&SY", "bzip2"},
  }};
  for (const auto& [mark, name] : kCompressed) {
    if (!begin.starts_with(mark)) continue;
    return Error{Code::kInvalid,
                 fmt::format("{} is compressed ({}), and rows cannot be told apart in it: "
                             "decompress it, or leave it out with pattern or exclude",
                             Printable(path, 4096), name)};
  }
  if (begin.starts_with("PAR1")) {
    return Error{Code::kInvalid, Printable(path, 4096) +
                                     " is a Parquet file: set tabular.format to Parquet, or leave "
                                     "it out with pattern or exclude"};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<BlockReader>> BlockReader::Open(store::Store& store, const std::string& name,
                                                       bool skip_mark, std::stop_token stop) {
  auto object = store.Open(name);
  if (!object.ok()) return object.error();
  return std::unique_ptr<BlockReader>(
      new BlockReader(std::move(*object), store.Location(name), skip_mark, std::move(stop)));
}

BlockReader::BlockReader(std::unique_ptr<store::Object> object, std::string path, bool skip_mark,
                         std::stop_token stop)
    : object_(std::move(object)),
      path_(std::move(path)),
      skip_mark_(skip_mark),
      stop_(std::move(stop)),
      buffer_(new char[kBufferSize]) {}

Status BlockReader::Fill() {
  if (stop_.stop_requested()) {
    return Error{Code::kUnavailable,
                 Printable(path_, 4096) + " is not read to its end: the job ended"};
  }
  const bool at_front = offset_ == 0;
  // Fewer bytes: it was cut short; whoever reads the slices will find out.
  const Result<size_t> got = object_->ReadAt(offset_, {buffer_.get(), kBufferSize});
  if (!got.ok()) return got.error();
  rest_ = {buffer_.get(), *got};
  if (at_front) {
    if (Status text = CheckIsText(rest_, path_); !text.ok()) return text;
  }
  if (at_front && skip_mark_ && rest_.starts_with(kByteOrderMark)) {
    Pass(kByteOrderMark.size());
    if (rest_.empty()) return Fill();
  }
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

}  // namespace parallelrun
