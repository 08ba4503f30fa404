// Cuts many small files from one stream, for tables.py. On standard input, little-endian: kind (0
// CSV, 1 JSON lines), length of the delimiter, quotes matter, first row is a header, length of the
// encoding: one byte each; size of a slice and length of the file: four bytes each; delimiter;
// encoding; file. The answer: 0 when the format is refused, else 1; length of the header and number
// of slices: four bytes each; header; offset, length and rows of each slice: four bytes each.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan/csv_splitter.h"
#include "plan/line_splitter.h"
#include "tests/support/disk_store.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "split_tables: %s\n", what);
  std::exit(1);
}

std::string Take(size_t size) {
  std::string bytes(size, '\0');
  if (std::fread(bytes.data(), 1, size, stdin) != size) Die("a request is cut short");
  return bytes;
}

uint32_t U32(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

void Put(std::string& out, uint64_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>(value >> shift & 0xFF);
}

std::string Refused() { return std::string(1, '\0'); }

std::string Cut(const std::string& head, const std::string& path, const std::string& delimiter,
                const std::string& encoding) {
  std::unique_ptr<plan::RowSplitter> splitter;
  std::string header;
  if (head[0] == 1) {
    auto lines = plan::LineSplitter::Open(DiskStore(), NameOnDisk(path));
    if (!lines.ok()) Die("the file cannot be opened");
    splitter = std::move(*lines);
  } else {
    const plan::CsvFormat format{delimiter, encoding, head[2] != 0};
    if (!plan::CheckCsvFormat(format).ok()) return Refused();
    auto rows = plan::CsvSplitter::Open(DiskStore(), NameOnDisk(path), format);
    if (!rows.ok()) Die("the file cannot be opened");
    if (head[3] != 0) {
      const auto taken = (*rows)->TakeHeader();
      if (!taken.ok()) return Refused();
      header = *taken;
    }
    splitter = std::move(*rows);
  }
  std::vector<job::Slice> slices;
  while (true) {
    const auto slice = splitter->Next(U32(head, 5));
    if (!slice.ok()) return Refused();
    if (!*slice) break;
    slices.push_back(**slice);
  }
  std::string answer(1, '\1');
  Put(answer, header.size());
  Put(answer, slices.size());
  answer += header;
  for (const job::Slice& slice : slices) {
    Put(answer, slice.offset);
    Put(answer, slice.length);
    Put(answer, slice.rows);
  }
  return answer;
}

}  // namespace

int main() {
  constexpr size_t kHead = 13;
  const int fd = memfd_create("table", MFD_CLOEXEC);
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  for (int first = 0; (first = std::fgetc(stdin)) != EOF;) {
    const std::string head = static_cast<char>(first) + Take(kHead - 1);
    const std::string delimiter = Take(static_cast<unsigned char>(head[1]));
    const std::string encoding = Take(static_cast<unsigned char>(head[4]));
    const std::string file = Take(U32(head, 9));
    if (ftruncate(fd, 0) != 0 ||
        pwrite(fd, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size())) {
      Die("the file cannot be written");
    }
    const std::string answer = Cut(head, path, delimiter, encoding);
    if (std::fwrite(answer.data(), 1, answer.size(), stdout) != answer.size()) Die("nobody reads");
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
