// The objects that Work names (docs/worker-protocol.md, "Stores"), and the same Work with files in
// their place, which is what a worker process reads. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun::job {

// Which bytes of an object are wanted.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = kToTheEnd;

  static constexpr uint64_t kToTheEnd = std::numeric_limits<uint64_t>::max();
  bool whole() const { return length == kToTheEnd; }
  auto operator<=>(const ByteRange&) const = default;  // NOLINT(modernize-use-nullptr)
};

// One version of an object, or of the bytes of it that a slice of a table has.
struct ObjectName {
  std::string store;     // one of the job's, by name
  std::string location;  // as its store says it: "s3://bucket/a/b.txt"
  std::string version;
  // Bytes, where the Work says it, which that of tables and lines does.
  uint64_t size = kAnySize;
  ByteRange range{};

  static constexpr uint64_t kAnySize = std::numeric_limits<uint64_t>::max();
  auto operator<=>(const ObjectName&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Whether Work names objects and not files.
bool NamesObjects(std::string_view work);

// The objects of Work that names some, in its order; one may come several times. Of a slice of a
// large table, delimited text or JSON lines, it is the bytes of the slice: its header stands in the
// Work. Of smaller ones, which the next slice is of too, and of Parquet and compressed ones, whose
// readers look elsewhere in the file, it is the whole. kCorrupt: it is no Work.
Result<std::vector<ObjectName>> ObjectsOf(std::string_view work);

// The same Work with files: `file_of` is each object's, relative to `folder` (absolute); a slice is
// at its own offset in it. What they
// are was checked when they were fetched, so that nothing is said of it. Work that ObjectsOf takes.
std::string WithFiles(std::string_view work, const std::string& folder,
                      const std::function<std::string(const ObjectName&)>& file_of);

}  // namespace parallelrun::job
