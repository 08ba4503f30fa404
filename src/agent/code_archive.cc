#include "agent/code_archive.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "base/escape.h"

namespace parallelrun::agent {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlock = 512;
constexpr uint64_t kMaxExtension = uint64_t{64} << 10;  // a long name, a pax header
constexpr size_t kMaxPath = 4096;

// The fields of a header that matter: where they are, and how long.
struct Field {
  size_t offset;
  size_t size;
};
constexpr Field kName{0, 100};
constexpr Field kMode{100, 8};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr Field kMagic{257, 5};
constexpr Field kPrefix{345, 155};
constexpr size_t kType = 156;

using Header = std::array<char, kBlock>;

std::string_view Text(const Header& header, const Field& field) {
  const std::string_view whole(header.data() + field.offset, field.size);
  return whole.substr(0, whole.find('\0'));
}

std::optional<uint64_t> Octal(const Header& header, const Field& field) {
  uint64_t value = 0;
  for (const char c : Text(header, field)) {
    if (c == ' ') continue;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

bool ChecksumHolds(const Header& header) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.size;
    sum += own ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return Octal(header, kChecksum) == sum;
}

// A disk that fills up takes a part first: only the next call says why.
Status WriteAll(int file, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, "write " + Printable(path.native(), kShown));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

bool LeftOut(const fs::path& path) {
  for (const fs::path& part : path) {
    if (part == ".git" || part == "__pycache__") return true;
  }
  return *path.begin() == "logs" || *path.begin() == "outputs";
}

class Unpacker {
 public:
  Unpacker(std::string archive, fs::path folder, const CodeArchiveLimits& limits)
      : archive_(std::move(archive)), folder_(std::move(folder)), limits_(limits) {}
  ~Unpacker() {
    if (gz_ != nullptr) gzclose(gz_);
  }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  Status Run() {
    gz_ = gzopen(archive_.c_str(), "rbe");
    if (gz_ == nullptr) return ErrnoError(errno, "open " + Shown(archive_));
    for (;;) {
      Header header{};
      if (Status s = Read(header.data(), kBlock); !s.ok()) return s;
      if (std::all_of(header.begin(), header.end(), [](char c) { return c == '\0'; })) return {};
      if (!ChecksumHolds(header)) return Bad("it is not a tar archive, or it is damaged");
      if (Status s = TakeEntry(header); !s.ok()) return s;
    }
  }

 private:
  static std::string Shown(const std::string& text) { return Printable(text, kShown); }

  Error Bad(const std::string& why) const {
    return {Code::kInvalid, fmt::format("the code archive {}: {}", Shown(archive_), why)};
  }
  Error BadEntry(const std::string& path, const std::string& why) const {
    return Bad(fmt::format("the entry \"{}\" {}", Shown(path), why));
  }

  Status Read(char* to, size_t size) {
    errno = 0;
    const int n = gzread(gz_, to, static_cast<unsigned>(size));
    if (n == static_cast<int>(size)) return {};
    const int number = errno;
    int code = 0;
    const char* words = gzerror(gz_, &code);
    if (code == Z_ERRNO) {
      return ErrnoError(number == 0 ? EIO : number, "read the code archive " + Shown(archive_));
    }
    return code == Z_OK || code == Z_BUF_ERROR || code == Z_STREAM_END
               ? Bad("it ends too early: make it again")
               : Bad(std::string("it cannot be decompressed: ") + words);
  }

  // The body of an entry that says something of the next one.
  Result<std::string> ReadExtension(uint64_t size) {
    if (size > kMaxExtension) return Bad("it has a header above 64 KiB");
    std::string text(size, '\0');
    if (Status s = Read(text.data(), size); !s.ok()) return s.error();
    if (Status s = SkipPadding(size); !s.ok()) return s.error();
    return text;
  }

  Status SkipPadding(uint64_t size) {
    std::array<char, kBlock> padding{};
    const size_t rest = size % kBlock;
    return rest == 0 ? Status() : Read(padding.data(), kBlock - rest);
  }

  // Records of a pax header: "<length> <key>=<value>\n".
  Status TakePax(std::string_view records) {
    while (!records.empty()) {
      const size_t space = records.find(' ');
      size_t length = 0;
      for (const char c : records.substr(0, std::min<size_t>(space, 6))) {
        if (c < '0' || c > '9') return Bad("it has a damaged pax header");
        length = length * 10 + static_cast<size_t>(c - '0');
      }
      if (space > 6 || length <= space + 1 || length > records.size()) {
        return Bad("it has a damaged pax header");
      }
      const std::string_view record = records.substr(space + 1, length - space - 2);
      if (record.starts_with("path=")) long_name_ = record.substr(5);
      if (record.starts_with("size=")) return Bad("it has a file above 8 GiB");
      records.remove_prefix(length);
    }
    return {};
  }

  Status TakeEntry(const Header& header) {
    const std::optional<uint64_t> size = Octal(header, kSize);
    const std::optional<uint64_t> mode = Octal(header, kMode);
    const char type = header[kType];
    std::string path = long_name_;
    if (path.empty()) {
      const std::string_view prefix =
          Text(header, kMagic) == "ustar" && header[kMagic.offset + 5] == '\0'
              ? Text(header, kPrefix)
              : std::string_view();
      path = std::string(prefix) + (prefix.empty() ? "" : "/") + std::string(Text(header, kName));
    }
    if (!size || !mode) return BadEntry(path, "has a size or mode that is no number");
    if (type == 'L' || type == 'x' || type == 'g') {
      const Result<std::string> text = ReadExtension(*size);
      if (!text.ok()) return text.error();
      if (type == 'L') long_name_ = text->substr(0, text->find('\0'));
      return type == 'x' ? TakePax(*text) : Status();
    }
    long_name_.clear();
    if (++entries_ > limits_.entries) {
      return Bad(fmt::format("it has more than {} entries", limits_.entries));
    }
    bytes_ += std::min(*size, limits_.bytes + 1);
    if (bytes_ > limits_.bytes) {
      return BadEntry(path, fmt::format("makes it larger than {} MiB: keep data and models in an "
                                        "input or a side input",
                                        limits_.bytes >> 20));
    }
    if (Status s = CheckPath(path); !s.ok()) return s;
    const fs::path relative = fs::path(path).lexically_normal();
    const bool is_folder = type == '5';
    if (!is_folder && type != '0' && type != '\0') {
      return BadEntry(path, "is neither a regular file nor a folder: put the file itself there");
    }
    if (is_folder)
      return *size == 0 ? MakeFolder(relative) : BadEntry(path, "is a folder of bytes");
    return WriteFile(relative, *size, static_cast<mode_t>(*mode & 0777));
  }

  Status CheckPath(const std::string& path) const {
    if (path.empty() || path.size() > kMaxPath) return BadEntry(path, "has no proper name");
    if (path.front() == '/') return BadEntry(path, "has an absolute path");
    for (const fs::path& part : fs::path(path)) {
      if (part == "..") return BadEntry(path, "leads out of the code with \"..\"");
    }
    return {};
  }

  Status MakeFolder(const fs::path& relative) const {
    if (LeftOut(relative)) return {};
    std::error_code error;
    fs::create_directories(folder_ / relative, error);
    return error ? ErrnoError(error.value(), "make the folder " + Shown(folder_ / relative))
                 : Status();
  }

  Status WriteFile(const fs::path& relative, uint64_t size, mode_t mode) {
    const bool wanted = !LeftOut(relative);
    const fs::path path = folder_ / relative;
    int out = -1;
    if (wanted) {
      std::error_code error;
      fs::create_directories(path.parent_path(), error);
      if (error) return ErrnoError(error.value(), "make the folder of " + Shown(path));
      out = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode | 0600);
      if (out < 0) return ErrnoError(errno, "create " + Shown(path));
    }
    Status status;
    std::array<char, size_t{64} << 10> buffer;
    for (uint64_t left = size; left > 0 && status.ok();) {
      const size_t n = std::min<uint64_t>(left, buffer.size());
      status = Read(buffer.data(), n);
      if (status.ok() && wanted) status = WriteAll(out, {buffer.data(), n}, path);
      left -= n;
    }
    if (wanted && close(out) != 0 && status.ok())
      status = ErrnoError(errno, "write " + Shown(path));
    return status.ok() ? SkipPadding(size) : status;
  }

  const std::string archive_;
  const fs::path folder_;
  const CodeArchiveLimits limits_;
  gzFile gz_ = nullptr;
  std::string long_name_;  // of the next entry
  uint64_t entries_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace

Status UnpackCode(const std::string& archive, const std::string& folder,
                  const CodeArchiveLimits& limits) {
  return Unpacker(archive, folder, limits).Run();
}

}  // namespace parallelrun::agent
