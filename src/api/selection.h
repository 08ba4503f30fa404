// What of its input a run takes, where somebody only tries a job on some of it. Plain data, no part
// of the job: two runs with different selections are different runs (settings.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::api {

struct Selection {
  // The first so many items of the job: files, or rows of tables.
  std::optional<uint64_t> limit;
  // By input, the files that are taken: FileDigest() of their names below its root, sorted. None
  // are taken of an input that is not named. Not set: all files.
  std::optional<std::map<std::string, std::vector<uint64_t>>> files;

  bool operator==(const Selection&) const = default;
};

// Names are bytes, which JSON cannot hold, and there may be many of them: they are told by digest.
uint64_t FileDigest(std::string_view name);

}  // namespace parallelrun::api
