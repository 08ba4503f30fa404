// The CSV splitter: its slices cover the file without a gap, each holds as many rows as it says,
// and the fast kernel cuts as the simple one does. The first four bytes of an input are the
// settings.
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "coordinator/plan/csv_splitter.h"
#include "tests/fuzz/expect.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

std::vector<Slice> Cut(const std::string& path, const CsvFormat& format, bool header, uint64_t size,
                       RowScanner::Kernel kernel) {
  const auto splitter = CsvSplitter::Open(path, format, kernel);
  Expect(splitter.ok(), "the file cannot be opened");
  std::vector<Slice> slices;
  if (header && !(*splitter)->TakeHeader().ok()) return slices;
  while (true) {
    const Result<std::optional<Slice>> slice = (*splitter)->Next(size);
    if (!slice.ok() || !*slice) return slices;
    slices.push_back(**slice);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  CsvFormat format;
  format.delimiter = std::string(1, static_cast<char>(data[0]));
  format.quoted_newlines = data[1] % 2 == 0;
  const bool header = data[1] / 2 % 2 == 0;
  const uint64_t wanted = 1 + data[2] + uint64_t{data[3]} * 16;
  if (!CheckCsvFormat(format).ok()) return 0;
  static const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const size_t length = size - 4;
  Expect(ftruncate(fd, 0) == 0 && pwrite(fd, data + 4, length, 0) == static_cast<ssize_t>(length),
         "the input cannot be written");
  const auto best = Cut(path, format, header, wanted, RowScanner::Kernel::kBest);
  const auto bytes = Cut(path, format, header, wanted, RowScanner::Kernel::kBytes);
  Expect(best.size() == bytes.size(), "the kernels cut differently");
  for (size_t i = 0; i < best.size(); ++i) {
    Expect(best[i].offset == bytes[i].offset && best[i].length == bytes[i].length &&
               best[i].rows == bytes[i].rows,
           "the kernels cut differently");
    Expect(best[i].rows > 0, "a slice has no row");
    Expect(best[i].offset + best[i].length <= length, "a slice is longer than the file");
    Expect(i == 0 || best[i].offset == best[i - 1].offset + best[i - 1].length,
           "slices leave a gap");
    Expect(i + 1 == best.size() || best[i].length >= wanted, "a slice is too short");
  }
  return 0;
}
