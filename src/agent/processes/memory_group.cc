#include "agent/processes/memory_group.h"
#include "base/small_file.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>

namespace parallelrun::agent {
namespace {

constexpr size_t kMostOfGroup = size_t{1} << 20;  // of a file of the cgroup

// "" where there is nothing.
std::string ReadSmall(const std::string& path) {
  return OrEmpty(ReadSmallFile(path, kMostOfGroup));
}

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

// The number after `key` in a file of lines "key number".
std::optional<uint64_t> FindEntry(const std::string& path, const std::string& wanted) {
  std::istringstream lines(ReadSmall(path));
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string key;
    uint64_t value = 0;
    if (words >> key >> value && key == wanted) return value;
  }
  return std::nullopt;
}

uint64_t Entry(const std::string& path, const std::string& wanted) {
  return FindEntry(path, wanted).value_or(0);
}

// v1 spells "no limit" as a number near 2^63.
bool IsLimit(std::optional<uint64_t> bytes) { return bytes && *bytes < uint64_t{1} << 62; }

}  // namespace

std::string HumanBytes(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= uint64_t{1} << 30) return fmt::format("{:.4g} GiB", value / (1 << 30));
  return fmt::format("{:.4g} MiB", value / (1 << 20));
}

MemoryGroup::MemoryGroup(const std::string& root) : root_(root) {
  std::istringstream lines(ReadSmall(root + "/proc/self/cgroup"));
  std::string line;
  while (std::getline(lines, line)) {  // number:controllers:path
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v1 = controllers == "memory";
    if (!v1 && !controllers.empty()) continue;
    const std::string mount = root + (v1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup");
    const std::string counter = v1 ? "/memory.oom_control" : "/memory.events";
    // A container without a cgroup namespace sees the host's path, and its own group at the root.
    for (const std::string& folder : {mount + line.substr(second + 1), mount}) {
      std::error_code ignored;
      if (!std::filesystem::exists(folder + counter, ignored)) continue;
      folder_ = folder;
      v2_ = !v1;
      return;
    }
  }
}

std::optional<uint64_t> MemoryGroup::OomKills() const {
  if (folder_.empty()) return std::nullopt;
  return FindEntry(folder_ + (v2_ ? "/memory.events" : "/memory.oom_control"), "oom_kill");
}

std::optional<uint64_t> MemoryGroup::Limit() const {
  if (folder_.empty()) return std::nullopt;
  const auto limit = Number(ReadSmall(folder_ + (v2_ ? "/memory.max" : "/memory.limit_in_bytes")));
  return IsLimit(limit) ? limit : std::nullopt;
}

uint64_t MemoryGroup::Used() const {
  if (folder_.empty()) return 0;
  return Number(ReadSmall(folder_ + (v2_ ? "/memory.current" : "/memory.usage_in_bytes")))
      .value_or(0);
}

uint64_t MemoryGroup::WorkingSet() const {
  if (folder_.empty()) return 0;
  return Less(Entry(folder_ + "/memory.stat", v2_ ? "inactive_file" : "total_inactive_file"));
}

uint64_t MemoryGroup::Unreclaimable() const {
  if (folder_.empty()) return 0;
  const std::string stat = folder_ + "/memory.stat";
  return Less(Entry(stat, v2_ ? "inactive_file" : "total_inactive_file") +
              Entry(stat, v2_ ? "active_file" : "total_active_file"));
}

uint64_t MemoryGroup::Less(uint64_t cache) const {
  const uint64_t used = Used();
  return used > cache ? used - cache : 0;
}

std::string MemoryGroup::Words() const {
  const std::optional<uint64_t> limit = Limit();
  if (!limit) return "";
  const auto peak =
      Number(ReadSmall(folder_ + (v2_ ? "/memory.peak" : "/memory.max_usage_in_bytes")));
  std::string words = "the container's limit is " + HumanBytes(*limit);
  if (peak) words += ", its peak was " + HumanBytes(*peak);
  return words;
}

std::string MemoryGroup::WhyKilled(std::optional<uint64_t> before, uint64_t peak) const {
  std::string memory = "the process had up to " + HumanBytes(peak);
  if (const std::string group = Words(); !group.empty()) {
    memory += ", " + group;
  } else if (const auto kib = FindEntry(root_ + "/proc/meminfo", "MemTotal:")) {
    memory += ", the machine has " + HumanBytes(*kib << 10);
  }
  constexpr char kMend[] =
      ". Lower spec.miniBatchSize or spec.processCountPerNode, or give it more memory "
      "(spec.resources.limits.memory)";
  const std::optional<uint64_t> now = OomKills();
  if (now && before && *now > *before) {
    return " by the kernel's out-of-memory killer: " + memory + kMend;
  }
  if (now && before) {
    // The kernel counts each of its kills in the group of the one that it killed.
    return ". The kernel's out-of-memory killer, the usual cause, did not do it: somebody else "
           "sent "
           "the signal, such as a person, the script, or a program that watches memory; " +
           memory;
  }
  return ". The usual cause is the kernel's out-of-memory killer: " + memory + kMend;
}

}  // namespace parallelrun::agent
