#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/escape.h"
#include "base/system_files.h"

namespace parallelrun {
namespace {

EntryKind KindOf(mode_t mode) {
  if (S_ISREG(mode)) return EntryKind::kFile;
  if (S_ISDIR(mode)) return EntryKind::kFolder;
  return S_ISLNK(mode) ? EntryKind::kLink : EntryKind::kOther;
}

class SystemFile final : public File {
 public:
  SystemFile(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Status WriteAt(uint64_t offset, std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = Retry([&] {
        return pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      });
      if (n < 0) return FailedTo("write");
      bytes.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return {};
  }

  Result<size_t> ReadInto(uint64_t offset, std::span<char> to) const override {
    size_t got = 0;
    while (got < to.size()) {
      const ssize_t n = Retry([&] {
        return pread(fd_.get(), to.data() + got, to.size() - got, static_cast<off_t>(offset + got));
      });
      if (n < 0) return FailedTo("read");
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

  void ExpectSequentialReads() const override {
    posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);  // a hint: what fails does no harm
  }

  Status Sync() override {
    if (Retry([&] { return fdatasync(fd_.get()); }) != 0) return FailedTo("sync");
    return {};
  }

  Result<FileFacts> Stat() const override {
    const std::optional<FileFacts> facts = FactsOf(fd_.get(), "", AT_EMPTY_PATH);
    if (!facts) return FailedTo("stat");
    return *facts;
  }

  Status Cut(uint64_t size) override {
    if (Retry([&] { return ftruncate(fd_.get(), static_cast<off_t>(size)); }) != 0) {
      return FailedTo("cut");
    }
    return {};
  }

  Status Reserve(uint64_t size) override {
    const int rc = Retry(
        [&] { return fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)); });
    if (rc != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return FailedTo("reserve room in");
    return {};
  }

  Status Trim() override {
    const Result<uint64_t> size = Size();
    if (!size.ok()) return size.error();
    // The same length as before: the system frees what lies behind it.
    if (Retry([&] { return ftruncate(fd_.get(), static_cast<off_t>(*size)); }) != 0) {
      return FailedTo("give back the reserve of");
    }
    return {};
  }

 private:
  Error FailedTo(const char* call) const {
    const int number = errno;  // before Printable may change it
    return ErrnoError(number, std::string(call) + " " + Printable(path_, 1000));
  }

  const Fd fd_;
  const std::string path_;
};

}  // namespace

std::optional<FileFacts> FactsOf(int folder, const char* name, int flags) {
  constexpr int64_t kNanoseconds = 1'000'000'000;
  struct statx st {};
  const unsigned wanted = STATX_TYPE | STATX_INO | STATX_SIZE | STATX_MTIME;
  if (Retry([&] { return statx(folder, name, flags, wanted, &st); }) != 0) return std::nullopt;
  FileFacts facts;
  facts.kind = KindOf(st.stx_mode);
  facts.id = {(uint64_t{st.stx_dev_major} << 32) | st.stx_dev_minor, st.stx_ino};
  facts.size = st.stx_size;
  facts.modified_ns = st.stx_mtime.tv_sec * kNanoseconds + st.stx_mtime.tv_nsec;
  return facts;
}

std::unique_ptr<File> MakeSystemFile(Fd fd, std::string path) {
  return std::make_unique<SystemFile>(std::move(fd), std::move(path));
}

}  // namespace parallelrun
