// Unpacks the code of a job that came as one `code.tar.gz` (from a ConfigMap, which has no
// folders). Blocking; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace parallelrun::agent {

inline constexpr char kCodeArchive[] = "code.tar.gz";

struct CodeArchiveLimits {
  uint64_t bytes = uint64_t{64} << 20;
  uint64_t entries = 20'000;
};

// Unpacks regular files and folders (ustar, with the long names of GNU tar and pax) into `folder`,
// which must have no links in it. Left out: `.git`, `__pycache__`, and `logs` and `outputs` at the
// top. kInvalid names the entry that is no file or folder, leads out, or is above the limits; what
// was unpacked before stays.
Status UnpackCode(const std::string& archive, const std::string& folder,
                  const CodeArchiveLimits& limits = {});

}  // namespace parallelrun::agent
