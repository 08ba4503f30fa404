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

Result<std::unique_ptr<BlockReader>> BlockReader::Open(const Files& files, const std::string& path,
                                                       bool skip_mark, std::stop_token stop) {
  Result<std::unique_ptr<File>> file = files.OpenRead(path);
  if (!file.ok()) return file.error();
  const Result<FileFacts> facts = (*file)->Stat();
  if (!facts.ok()) return facts.error();
  (*file)->ExpectSequentialReads();
  const FileStamp stamp{facts->size, facts->modified_ns};
  return std::unique_ptr<BlockReader>(
      new BlockReader(std::move(*file), path, stamp, skip_mark, std::move(stop)));
}

BlockReader::BlockReader(std::unique_ptr<File> file, std::string path, FileStamp stamp,
                         bool skip_mark, std::stop_token stop)
    : file_(std::move(file)),
      path_(std::move(path)),
      stamp_(stamp),
      skip_mark_(skip_mark),
      stop_(std::move(stop)),
      buffer_(new char[kBufferSize]) {}

Status BlockReader::Fill() {
  if (stop_.stop_requested()) {
    return Error{Code::kUnavailable,
                 Printable(path_, 4096) + " is not read to its end: the job ended"};
  }
  const bool at_front = offset_ == 0;
  const size_t wanted =
      std::min<uint64_t>(kBufferSize, stamp_.size - std::min(offset_, stamp_.size));
  // Fewer bytes: it was cut short; whoever reads the slices will find out.
  const Result<size_t> got = file_->ReadInto(offset_, {buffer_.get(), wanted});
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
  Result<std::string> bytes = file_->ReadAt(offset, size);
  if (!bytes.ok() || bytes->size() == size) return bytes;
  return Error{Code::kInvalid,
               fmt::format("{} became shorter while it was read", Printable(path_, 4096))};
}

}  // namespace parallelrun
