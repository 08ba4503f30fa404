// The memory cgroup that this process and its children live in: was somebody killed for memory,
// and what are its limit and peak? Reads small files; safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace parallelrun::agent {

class MemoryGroup {
 public:
  // Finds the group of the calling process, cgroup v2 or v1. `root` stands before /proc and /sys.
  explicit MemoryGroup(const std::string& root = "");

  // How many processes the kernel has killed in it for lack of memory; nullopt when unknown.
  std::optional<uint64_t> OomKills() const;
  // Of memory, in bytes; nullopt when there is none or it is unknown.
  std::optional<uint64_t> Limit() const;
  // What it has in use, page cache included; 0 when unknown.
  uint64_t Used() const;
  // What it has in use and cannot drop at once, as a cluster counts it; 0 when unknown.
  uint64_t WorkingSet() const;
  // What it has in use less all of its page cache; 0 when unknown.
  uint64_t Unreclaimable() const;
  // "the container's limit is 4 GiB, its peak was 3.98 GiB", as far as known; else "".
  std::string Words() const;
  // Why a process may have got SIGKILL that nobody here sent, and what to do: follows "was killed
  // by signal 9 (SIGKILL)". `before` is what OomKills said when it was started, `peak` the most
  // memory that it had.
  std::string WhyKilled(std::optional<uint64_t> before, uint64_t peak) const;

 private:
  uint64_t Less(uint64_t cache) const;

  const std::string root_;
  std::string folder_;  // "": not found
  bool v2_ = false;
};

// "3.98 GiB"
std::string HumanBytes(uint64_t bytes);

}  // namespace parallelrun::agent
