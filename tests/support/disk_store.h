// The whole disk of this machine as a store, for tests of what reads one file.
#pragma once

#include <memory>
#include <string>

#include "store/folder/folder_store.h"
#include "tests/support/disk_files.h"

namespace parallelrun {

inline store::Store& DiskStore() {
  static const std::unique_ptr<store::Store> disk = store::MakeFolderStore(DiskFiles(), {"/"});
  return *disk;
}

// The name there of an absolute path.
inline std::string NameOnDisk(const std::string& path) { return path.substr(1); }

}  // namespace parallelrun
