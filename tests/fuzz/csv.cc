// The splitters of CSV files and of JSON lines: their slices cover the file without a gap, none is
// smaller than asked for but the last, and the fast kernel cuts as the simple one does; of
// compressed files too. The first four bytes of an input are the settings.
#include <sys/mman.h>
#include <unistd.h>

#include <limits>
#include <vector>

#include "plan/csv_splitter.h"
#include "plan/line_splitter.h"
#include "tests/fuzz/expect.h"
#include "tests/support/disk_store.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<job::Slice> Rest(plan::RowSplitter& splitter, uint64_t size, size_t length) {
  std::vector<job::Slice> slices;
  if (splitter.compressed()) {
    // It may hold far more than it is long, and is cut into one.
    size = std::numeric_limits<uint64_t>::max();
    length = std::numeric_limits<size_t>::max();
  }
  while (true) {
    const Result<std::optional<job::Slice>> slice = splitter.Next(size);
    if (!slice.ok() || !*slice) return slices;
    slices.push_back(**slice);
    const job::Slice& made = slices.back();
    Expect(made.rows > 0, "a slice has no row");
    Expect(made.offset + made.length <= length, "a slice is longer than the file");
    if (slices.size() == 1) continue;
    const job::Slice& before = slices[slices.size() - 2];
    Expect(made.offset == before.offset + before.length, "slices leave a gap");
  }
}

std::vector<job::Slice> Cut(const std::string& path, const plan::CsvFormat& format, bool header,
                            uint64_t size, size_t length, plan::RowScanner::Kernel kernel) {
  const auto splitter = plan::CsvSplitter::Open(DiskStore(), NameOnDisk(path), format, kernel);
  Expect(splitter.ok(), "the file cannot be opened");
  if (header && !(*splitter)->TakeHeader().ok()) return {};
  return Rest(**splitter, size, length);
}

void CutLines(const std::string& path, uint64_t lines, size_t length) {
  const auto splitter = plan::LineSplitter::Open(DiskStore(), NameOnDisk(path));
  Expect(splitter.ok(), "the file cannot be opened");
  const std::vector<job::Slice> slices = Rest(**splitter, lines, length);
  if ((*splitter)->compressed()) return;
  for (size_t i = 0; i < slices.size(); ++i) {
    Expect(slices[i].rows <= lines, "a slice has too many lines");
    Expect(i + 1 == slices.size() || slices[i].rows == lines, "a slice has too few lines");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  plan::CsvFormat format;
  format.delimiter = std::string(1, static_cast<char>(data[0]));
  if (data[1] >= 128) format.delimiter += format.delimiter;
  format.quoted_newlines = data[1] % 2 == 0;
  const bool header = data[1] / 2 % 2 == 0;
  constexpr const char* kEncodings[] = {"utf-8", "Latin_1", "shift-jis", "utf-16"};
  format.encoding = kEncodings[data[1] / 8 % 4];
  format.fronts = true;
  if (data[1] / 32 % 2 != 0) format.comment = '#';
  if (data[1] / 64 % 2 != 0) format.escape = '\\';
  const uint64_t wanted = 1 + data[2] + uint64_t{data[3]} * 16;
  if (!plan::CheckCsvFormat(format).ok()) return 0;
  static const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const size_t length = size - 4;
  Expect(ftruncate(fd, 0) == 0 && pwrite(fd, data + 4, length, 0) == static_cast<ssize_t>(length),
         "the input cannot be written");
  if (data[1] / 4 % 2 != 0) {
    CutLines(path, wanted, length);
    return 0;
  }
  const auto best = Cut(path, format, header, wanted, length, plan::RowScanner::Kernel::kBest);
  const auto bytes = Cut(path, format, header, wanted, length, plan::RowScanner::Kernel::kBytes);
  Expect(best.size() == bytes.size(), "the kernels cut differently");
  for (size_t i = 0; i < best.size(); ++i) {
    Expect(best[i].offset == bytes[i].offset && best[i].length == bytes[i].length &&
               best[i].rows == bytes[i].rows,
           "the kernels cut differently");
    Expect(i + 1 == best.size() || best[i].length >= wanted, "a slice is too short");
  }
  return 0;
}
