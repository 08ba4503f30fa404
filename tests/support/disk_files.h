// The files of this machine, for tests that write real ones.
#pragma once

#include <memory>

#include "base/files.h"

namespace parallelrun {

inline Files& DiskFiles() {
  static const std::unique_ptr<Files> files = MakeSystemFiles();
  return *files;
}

}  // namespace parallelrun
