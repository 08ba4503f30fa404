// Volumes that show the objects of a bucket as files (Mountpoint for S3, goofys, s3fs, blobfuse and
// their like). They are good to read from. What is written there is no file: it cannot be appended
// to, renamed in one step or locked, and a sync that succeeded keeps nothing; so neither a ledger
// nor an output lies there. What a mount is, is decided by plain data; ObjectMountAt looks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "coordinator/start/layout.h"

namespace parallelrun::coordinator {

struct Mount {
  std::string type;    // of its file system: "ext4", "fuse.s3fs"
  std::string source;  // "/dev/sda1", "mountpoint-s3"
};

// Where `path`, which is absolute and has no links, lies, by the text of /proc/self/mountinfo; what
// is mounted last hides what was there. Empty fields where nothing is. Pure.
Mount MountOf(std::string_view mountinfo, std::string_view path);

// What a file system says of its size, in bytes and in files.
struct MountSize {
  uint64_t bytes = 0;
  uint64_t free = 0;
  uint64_t files = 0;
};

// By what name people know a mount of that kind: "s3fs"; "" for all else. Pure.
std::string_view ObjectMountName(const Mount& mount, const MountSize& size);

// The same of a folder, or of what is there on the way to it. "" too where nobody can tell. Blocks
// as long as its volume does.
std::string ObjectMountAt(const std::string& folder);

// Why nothing can be written there, in words: of `folder`, which is `what`.
std::string ObjectMountRefusal(std::string_view what, const std::string& folder,
                               std::string_view name);

// kInvalid: the output, the logs or the state would lie on such a mount.
Status CheckMounts(const JobLayout& layout);

}  // namespace parallelrun::coordinator
