#include "base/processors.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <sstream>

#include "base/small_file.h"

namespace parallelrun {
namespace {

constexpr std::string_view kGroups = "/sys/fs/cgroup";
constexpr size_t kMostOfAFile = 64 << 10;

// Takes a number off the front; none where there is none, as in "max".
std::optional<uint64_t> TakeNumber(std::string_view& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

std::optional<double> CoreQuota(std::string_view cpu_max) {
  const std::optional<uint64_t> time = TakeNumber(cpu_max);
  if (!time || !cpu_max.starts_with(' ')) return std::nullopt;
  cpu_max.remove_prefix(1);
  const std::optional<uint64_t> period = TakeNumber(cpu_max);
  if (period.value_or(0) == 0) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(*period);
}

std::string ControlGroup() {
  std::istringstream lines(OrEmpty(ReadSmallFile("/proc/self/cgroup", kMostOfAFile)));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("0::")) return std::string(kGroups) + line.substr(3);
  }
  return "";
}

size_t Processors::AtOnce() const {
  // What is more than a whole core's time would have to be waited for.
  const double most = std::min(quota.value_or(cores), static_cast<double>(cores));
  return std::max<size_t>(1, static_cast<size_t>(most));
}

Processors FindProcessors() {
  Processors found;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) {
    found.cores = static_cast<unsigned>(CPU_COUNT(&cores));
  }
  // A group has no more than those above it, whose limits its own file does not tell.
  for (std::string group = ControlGroup(); group.size() > kGroups.size();
       group.erase(group.rfind('/'))) {
    const std::optional<double> quota =
        CoreQuota(OrEmpty(ReadSmallFile(group + "/cpu.max", kMostOfAFile)));
    if (quota) found.quota = std::min(*quota, found.quota.value_or(*quota));
  }
  return found;
}

}  // namespace parallelrun
