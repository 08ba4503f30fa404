// What the planner reads of input files besides their rows: the footers of Parquet files, and paths
// by patterns and partition formats. The first byte of an input says which; a pattern and a path
// are parted by a NUL.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "plan/columns/parquet_types.h"
#include "plan/glob.h"
#include "plan/parquet_splitter.h"
#include "plan/partition_format.h"
#include "tests/fuzz/expect.h"
#include "tests/support/disk_store.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

namespace {

void CheckParquet(std::string_view file, uint64_t size) {
  static const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(fd);
  Expect(ftruncate(fd, 0) == 0 &&
             pwrite(fd, file.data(), file.size(), 0) == static_cast<ssize_t>(file.size()),
         "the input cannot be written");
  plan::NullReads reads;
  if (const auto columns = plan::ReadParquetColumns(DiskStore(), NameOnDisk(path), reads);
      columns.ok()) {
    plan::ParquetTypes types;
    if (types.Add("a", *columns).ok() && types.Add("b", *columns).ok()) types.Json();
  }
  const auto splitter = plan::ParquetSplitter::Open(DiskStore(), NameOnDisk(path));
  if (!splitter.ok()) return;
  uint64_t next = 0;
  while (true) {
    const auto slice = (*splitter)->Next(size);
    if (!slice.ok() || !*slice) return;
    Expect((*slice)->rows > 0 && (*slice)->length > 0, "a slice has no row");
    Expect((*slice)->offset >= next, "slices overlap");
    next = (*slice)->offset + (*slice)->length;
    Expect(next <= file.size(), "there are more row groups than the footer has bytes");
  }
}

std::string ParquetFile(std::string_view footer) {
  const auto length = static_cast<uint32_t>(footer.size());
  std::string tail(sizeof(length), '\0');
  std::memcpy(tail.data(), &length, sizeof(length));
  return std::string("PAR1").append(footer).append(tail).append("PAR1");
}

// As listings have them.
bool IsPath(std::string_view path) {
  return !path.empty() && !path.starts_with('/') && !path.ends_with('/') &&
         path.find("//") == std::string_view::npos;
}

void CheckGlob(std::string_view pattern, std::string_view path) {
  const plan::Glob glob(pattern);
  if (!IsPath(path) || !glob.Matches(path)) return;
  for (size_t at = 0; (at = path.find('/', at)) != std::string_view::npos; ++at) {
    Expect(glob.MayMatchBelow(path.substr(0, at)), "a folder with a match would not be read");
  }
}

void CheckPartition(std::string_view text, std::string_view path) {
  const auto format = plan::PartitionFormat::Parse(text);
  if (!format.ok()) return;
  const auto context = plan::PathContext::Make(std::string(text), format->names());
  Expect(context.ok() || text.empty(), "a format that was read is refused");
  const auto values = format->Match(path);
  // What matches may name a day that is none.
  if (context.ok())
    Expect(text.empty() || !context->Of(path).ok() || values.has_value(), "no match");
  if (!values) return;
  Expect(values->size() == format->names().size(), "a name has no value");
  for (const std::string_view value : *values) Expect(!value.empty(), "a value is empty");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t nul = std::min(rest.find('\0'), rest.size());
  const std::string_view path = rest.substr(std::min(nul + 1, rest.size()));
  switch (data[0] % 4) {
    case 0: CheckParquet(ParquetFile(rest), uint64_t{data[1]} * 16); break;
    case 1: CheckParquet(rest, data[1]); break;
    case 2: CheckGlob(rest.substr(0, nul), path); break;
    default: CheckPartition(rest.substr(0, nul), path);
  }
  return 0;
}
