#include "agent/processes/memory_watch.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/small_file.h"

namespace parallelrun::agent {
namespace {

constexpr size_t kMostOfStatm = 4096;

// Resident, less what is shared with others (files, the parent's pages); bytes.
uint64_t OwnBytes(const std::string& pid) {
  std::istringstream statm(OrEmpty(ReadSmallFile("/proc/" + pid + "/statm", kMostOfStatm)));
  uint64_t size = 0;
  uint64_t resident = 0;
  uint64_t shared = 0;
  if (!(statm >> size >> resident >> shared) || resident < shared) return 0;
  return (resident - shared) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace

uint64_t MemoryReserve(uint64_t limit) {
  return std::clamp<uint64_t>(limit / 32, std::min<uint64_t>(limit / 4, uint64_t{16} << 20),
                              uint64_t{512} << 20);
}

std::optional<std::string> MemoryWatch::Short() const {
  if (!limit_) return std::nullopt;
  const uint64_t most = *limit_ - MemoryReserve(*limit_);
  // The first figure is cheap, and counts the page cache too.
  if (group_.Used() < most) return std::nullopt;
  const uint64_t held = group_.Unreclaimable();
  if (held < most) return std::nullopt;
  return fmt::format("the container's limit is {}, {} are in use and cannot be reclaimed",
                     HumanBytes(*limit_), HumanBytes(held));
}

std::optional<pid_t> MemoryWatch::Largest(const std::vector<pid_t>& leaders) {
  std::map<pid_t, uint64_t> groups;
  std::error_code error;
  for (std::filesystem::directory_iterator it("/proc", error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t group = getpgid(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)));
    if (std::find(leaders.begin(), leaders.end(), group) == leaders.end()) continue;
    groups[group] += OwnBytes(name);
  }
  std::optional<pid_t> largest;
  for (const auto& [group, bytes] : groups) {
    if (bytes > (largest ? groups[*largest] : 0)) largest = group;
  }
  return largest;
}

}  // namespace parallelrun::agent
