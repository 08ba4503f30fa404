#include "coordinator/plan/csv_splitter.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "base/escape.h"

namespace parallelrun {
namespace {

constexpr size_t kMaxHeader = 1024 * 1024;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// "UTF_8" and "utf-8" are the same to Python.
std::string PlainEncoding(std::string_view encoding) {
  std::string plain;
  for (const char c : encoding) {
    if (c == '_' || c == ' ') {
      plain += '-';
    } else {
      plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  return plain;
}

bool IsUtf8(const std::string& plain) {
  return plain == "utf-8" || plain == "utf8" || plain == "utf-8-sig" || plain == "ascii" ||
         plain == "us-ascii";
}

bool IsOneByteAscii(const std::string& plain) {
  constexpr std::array<std::string_view, 12> kFamilies = {
      "latin", "l1",   "iso-8859", "iso8859",   "cp125", "windows-125",
      "cp437", "cp85", "cp86",     "mac-roman", "koi8",  "tis-620"};
  // In these a second byte may look like a letter, but never like a quote or a line end.
  constexpr std::array<std::string_view, 9> kMultiByte = {
      "gb2312", "gbk", "gb18030", "cp936", "big5", "shift-jis", "sjis", "cp932", "euc-"};
  const auto begins = [&](std::string_view family) { return plain.starts_with(family); };
  return std::any_of(kFamilies.begin(), kFamilies.end(), begins) ||
         std::any_of(kMultiByte.begin(), kMultiByte.end(), begins);
}

}  // namespace

Status CheckCsvFormat(const CsvFormat& format) {
  const std::string_view delimiter = format.delimiter;
  if (delimiter.size() != 1 || delimiter == "\"" || delimiter == "\n" || delimiter == "\r" ||
      static_cast<unsigned char>(delimiter[0]) >= 0x80) {
    return Error{Code::kInvalid,
                 fmt::format("tabular.delimiter \"{}\" must be one ASCII character that is neither "
                             "a quote nor a line break",
                             Printable(delimiter, 64))};
  }
  const std::string plain = PlainEncoding(format.encoding);
  if (IsUtf8(plain) || IsOneByteAscii(plain)) return {};
  return Error{Code::kInvalid,
               fmt::format("tabular.encoding \"{}\" cannot be cut at row boundaries; convert the "
                           "files to utf-8 (`iconv -f {} -t utf-8`); accepted are utf-8, ascii, "
                           "latin-1, iso-8859-*, cp125*, gbk, gb18030, big5, shift_jis, euc-*",
                           Printable(format.encoding, 64), Printable(format.encoding, 64))};
}

Result<std::unique_ptr<CsvSplitter>> CsvSplitter::Open(const std::string& path,
                                                       const CsvFormat& format,
                                                       RowScanner::Kernel kernel) {
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
  std::unique_ptr<CsvSplitter> splitter(new CsvSplitter(
      fd, path, stamp, RowScanner({format.delimiter[0], format.quoted_newlines}, kernel)));
  splitter->skip_mark_ = IsUtf8(PlainEncoding(format.encoding));
  return splitter;
}

CsvSplitter::CsvSplitter(int fd, std::string path, FileStamp stamp, RowScanner scanner)
    : fd_(fd),
      path_(std::move(path)),
      stamp_(stamp),
      scanner_(scanner),
      buffer_(new char[kBufferSize]) {}

CsvSplitter::~CsvSplitter() { close(fd_); }

void CsvSplitter::Seek(uint64_t offset) {
  uint64_t unused = 0;
  scanner_.Finish(unused);
  offset_ = offset;
  rest_ = {};
}

Result<std::string> CsvSplitter::TakeHeader() {
  std::string header;
  const auto taken = TakeRows(0, &header);
  if (!taken.ok()) return taken.error();
  if (taken->rows == 0) return std::string();
  header.erase(0, header.find_first_not_of("\r\n"));
  if (header.back() != '\n' && header.back() != '\r') header += '\n';
  return header;
}

Result<std::optional<Slice>> CsvSplitter::Next(uint64_t size) {
  const auto slice = TakeRows(size, nullptr);
  if (!slice.ok()) return slice.error();
  return slice->rows == 0 ? std::optional<Slice>() : std::optional<Slice>(*slice);
}

Result<Slice> CsvSplitter::TakeRows(uint64_t least, std::string* copy) {
  const auto pass = [&](size_t size) {
    if (copy != nullptr) copy->append(rest_.substr(0, size));
    rest_.remove_prefix(size);
    offset_ += size;
  };
  Status filled = rest_.empty() ? Fill() : Status();
  const uint64_t begin = offset_;
  uint64_t rows = 0;
  while (filled.ok() && !rest_.empty()) {
    const uint64_t done = offset_ - begin;
    const auto step = scanner_.Scan(rest_, least > done ? least - done : 0, rows);
    const bool carriage_return = rest_[step.used - 1] == '\r';
    pass(step.used);
    if (copy != nullptr && copy->size() > kMaxHeader) {
      return Error{Code::kInvalid,
                   fmt::format("{}: the header line is longer than 1 MiB; check its quotes, or set "
                               "tabular.header to None",
                               Printable(path_, 4096))};
    }
    if (rest_.empty()) filled = Fill();
    if (!step.cut) continue;
    if (filled.ok() && carriage_return && rest_.starts_with('\n')) pass(1);
    break;
  }
  if (!filled.ok()) return filled.error();
  if (rest_.empty()) scanner_.Finish(rows);
  if (rows > std::numeric_limits<uint32_t>::max()) {
    return Error{Code::kInvalid, fmt::format("{}: a mini-batch of {} rows is too large; lower "
                                             "miniBatchSize",
                                             Printable(path_, 4096), rows)};
  }
  return Slice{begin, offset_ - begin, static_cast<uint32_t>(rows)};
}

// Reads the next bytes into the empty rest_, which stays empty at the end of the file.
Status CsvSplitter::Fill() {
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
  if (at_front && skip_mark_ && rest_.starts_with(kByteOrderMark)) {
    rest_.remove_prefix(kByteOrderMark.size());
    offset_ = kByteOrderMark.size();
    if (rest_.empty()) return Fill();
  }
  return {};
}

}  // namespace parallelrun
