#include "agent/room.h"

#include <spdlog/fmt/fmt.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/escape.h"

namespace parallelrun::agent {
namespace {

// What a few processes print before the next look.
constexpr uint64_t kLeastBytes = uint64_t{256} << 10;
constexpr uint64_t kLeastFiles = 16;

}  // namespace

std::string WantOfRoom(const std::string& folder) {
  struct statvfs facts {};
  if (statvfs(folder.c_str(), &facts) != 0 || facts.f_blocks == 0) return "";
  const bool root = geteuid() == 0;  // may use what is reserved
  const uint64_t bytes = uint64_t{root ? facts.f_bfree : facts.f_bavail} * facts.f_frsize;
  const uint64_t files = root ? facts.f_ffree : facts.f_favail;
  const bool no_files = facts.f_files > 0 && files < kLeastFiles;
  if (bytes >= kLeastBytes && !no_files) return "";
  return fmt::format("no {} left in {}, where the node keeps its code, logs and temporary files",
                     no_files ? "inodes are" : "space is", Printable(folder, kShownLong));
}

}  // namespace parallelrun::agent
