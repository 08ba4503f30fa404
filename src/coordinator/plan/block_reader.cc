#include "coordinator/plan/block_reader.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
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

Result<std::unique_ptr<BlockReader>> BlockReader::Open(const std::string& path, bool skip_mark,
                                                       std::stop_token stop) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat found {};
  if (fd < 0 || fstat(fd, &found) != 0) {
    const Error error = ErrnoError(errno, "open " + Printable(path, 4096));
    if (fd >= 0) close(fd);
    return error;
  }
  posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  constexpr int64_t kNanoseconds = 1'000'000'000;
  const FileStamp stamp{static_cast<uint64_t>(found.st_size),
                        found.st_mtim.tv_sec * kNanoseconds + found.st_mtim.tv_nsec};
  return std::unique_ptr<BlockReader>(new BlockReader(fd, path, stamp, skip_mark, std::move(stop)));
}

BlockReader::BlockReader(int fd, std::string path, FileStamp stamp, bool skip_mark,
                         std::stop_token stop)
    : fd_(fd),
      path_(std::move(path)),
      stamp_(stamp),
      skip_mark_(skip_mark),
      stop_(std::move(stop)),
      buffer_(new char[kBufferSize]) {}

BlockReader::~BlockReader() { close(fd_); }

Status BlockReader::Fill() {
  if (stop_.stop_requested()) {
    return Error{Code::kUnavailable,
                 Printable(path_, 4096) + " is not read to its end: the job ended"};
  }
  const bool at_front = offset_ == 0;
  size_t held = 0;
  // A byte order mark must not be cut by a short read.
  while (held < (at_front ? kByteOrderMark.size() : 1) && offset_ + held < stamp_.size) {
    const size_t wanted = std::min<uint64_t>(kBufferSize - held, stamp_.size - offset_ - held);
    const ssize_t got =
        pread(fd_, buffer_.get() + held, wanted, static_cast<off_t>(offset_ + held));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read " + Printable(path_, 4096));
    if (got == 0) break;  // it was cut short; whoever reads the slices will find out
    held += static_cast<size_t>(got);
  }
  rest_ = {buffer_.get(), held};
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
  std::string bytes(size, '\0');
  for (size_t held = 0; held < size;) {
    const ssize_t got =
        pread(fd_, bytes.data() + held, size - held, static_cast<off_t>(offset + held));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read " + Printable(path_, 4096));
    if (got == 0) {
      return Error{Code::kInvalid,
                   fmt::format("{} became shorter while it was read", Printable(path_, 4096))};
    }
    held += static_cast<size_t>(got);
  }
  return bytes;
}

}  // namespace parallelrun
