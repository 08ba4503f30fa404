#include "base/small_file.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/escape.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/system_files.h"

namespace parallelrun {
namespace {

// `read_some`(to, size, how much was read before it) as read(2).
template <class ReadSome>
Result<std::string> ReadUpTo(size_t most, const std::string& name, const ReadSome& read_some) {
  std::string text;
  std::array<char, 16384> buffer{};
  while (text.size() < most) {
    const size_t wanted = std::min(buffer.size(), most - text.size());
    const ssize_t n = Retry([&] { return read_some(buffer.data(), wanted, text.size()); });
    if (n < 0) return ErrnoError(errno, "read " + Printable(name, kShownLongest));
    if (n == 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  return text;
}

}  // namespace

Result<std::string> ReadBegin(int fd, size_t most, const std::string& name) {
  return ReadUpTo(most, name,
                  [fd](char* to, size_t size, size_t /*from*/) { return read(fd, to, size); });
}

Result<std::string> ReadBegin(const Files& files, const std::string& path, size_t most) {
  const Result<std::unique_ptr<File>> file = files.OpenRead(path);
  return file.ok() ? (*file)->ReadAt(0, most) : file.error();
}

Result<std::string> ReadRange(int fd, uint64_t offset, size_t most, const std::string& name) {
  return ReadUpTo(most, name, [fd, offset](char* to, size_t size, size_t from) {
    return pread(fd, to, size, static_cast<off_t>(offset + from));
  });
}

Result<std::string> ReadEnd(int fd, size_t most, const std::string& name) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0) return ErrnoError(errno, "read " + Printable(name, kShownLongest));
  const auto size = static_cast<uint64_t>(facts.st_size);
  return ReadRange(fd, size - std::min<uint64_t>(size, most), most, name);
}

Result<std::string> ReadWhole(int fd, size_t limit, const std::string& name) {
  Result<std::string> text = ReadBegin(fd, limit + 1, name);
  if (!text.ok() || text->size() <= limit) return text;
  const bool large = limit >> 20 > 0;
  return Error{Code::kInvalid,
               fmt::format("read {}: it has more than {} {}", Printable(name, kShownLongest),
                           large ? limit >> 20 : limit, large ? "MiB" : "bytes")};
}

Result<std::string> ReadSmallFile(const std::string& path, size_t limit, int flags) {
  const Fd fd(Retry([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | flags); }));
  if (!fd.ok()) return ErrnoError(errno, "read " + Printable(path, kShownLongest));
  return ReadWhole(fd.get(), limit, path);
}

std::string OrEmpty(Result<std::string> text) {
  return text.ok() ? *std::move(text) : std::string();
}

}  // namespace parallelrun
