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

namespace parallelrun::agent {

// One version of an object.
struct ObjectName {
  std::string store;     // one of the job's, by name
  std::string location;  // as its store says it: "s3://bucket/a/b.txt"
  std::string version;
  // Bytes, where the Work says it, which that of tables and lines does.
  uint64_t size = kAnySize;

  static constexpr uint64_t kAnySize = std::numeric_limits<uint64_t>::max();
  auto operator<=>(const ObjectName&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Whether Work names objects and not files.
bool NamesObjects(std::string_view work);

// The objects of Work that names some, in its order; one may come several times. kCorrupt: it is no
// Work.
Result<std::vector<ObjectName>> ObjectsOf(std::string_view work);

// The same Work with files: `file_of` is each object's, relative to `folder` (absolute). What they
// are was checked when they were fetched, so that nothing is said of it. Work that ObjectsOf takes.
std::string WithFiles(std::string_view work, const std::string& folder,
                      const std::function<std::string(const ObjectName&)>& file_of);

}  // namespace parallelrun::agent
