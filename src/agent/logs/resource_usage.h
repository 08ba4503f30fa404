// What the resource monitor makes of the kernel's files: texts of /proc in, lines of CSV out.
// Pure, thread-safe. MB are 2^20 bytes. A text that is not as expected gives zeros.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace parallelrun::agent {

// Of the machine, or of the container where it has limits of its own. Counters are since boot.
struct NodeUsage {
  double cpu_percent = 0;  // of all CPUs together, since the reading before
  uint64_t memory_total = 0;
  uint64_t memory_available = 0;
  uint64_t disk_reads = 0;
  uint64_t disk_writes = 0;
  uint64_t disk_read_bytes = 0;
  uint64_t disk_written_bytes = 0;
  uint64_t net_sent_bytes = 0;
  uint64_t net_received_bytes = 0;
  uint64_t tcp_sockets = 0;
  uint64_t udp_sockets = 0;
};

struct CpuTimes {
  uint64_t busy = 0;  // in ticks, as is total
  uint64_t total = 0;
};
CpuTimes ParseCpuTimes(std::string_view stat);
double CpuPercent(const CpuTimes& before, const CpuTimes& now);
void ParseMemInfo(std::string_view meminfo, NodeUsage& usage);
// Whole disks only: their partitions would count twice.
void ParseDiskStats(std::string_view diskstats, NodeUsage& usage);
void ParseNetDev(std::string_view dev, NodeUsage& usage);
void ParseSockets(std::string_view sockstat, NodeUsage& usage);  // adds: for IPv4 and IPv6

struct ProcessUsage {
  int pid = 0;
  int parent = 0;
  char state = '?';
  std::string name;
  uint64_t cpu_ticks = 0;
  uint64_t start_ticks = 0;  // since boot
  uint64_t threads = 0;
  uint64_t memory_bytes = 0;  // resident
  uint64_t virtual_bytes = 0;
  // As far as readable.
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  uint32_t user = 0;
  std::string command;  // empty: not to be shown
};
std::optional<ProcessUsage> ParseProcessStat(std::string_view stat, uint64_t page_bytes);
// `pid` itself, and all that it has started, and these.
std::set<int> ProcessesBelow(const std::vector<ProcessUsage>& processes, int pid);
void ParseProcessIo(std::string_view io, ProcessUsage& usage);

struct DiskUsage {
  std::string path;
  uint64_t total = 0;
  uint64_t available = 0;
  uint64_t used = 0;
};

// The first line of each file, and one line for a reading. All with their line end.
extern const char* const kNodeUsageHeader;
extern const char* const kProcessUsageHeader;
extern const char* const kDiskUsageHeader;
std::string NodeUsageLine(const NodeUsage& usage, WallTime now);
std::string ProcessUsageLine(const std::string& name, const ProcessUsage& usage, double cpu_percent,
                             WallTime now);
std::string DiskUsageLine(const DiskUsage& usage, WallTime now);
// A table of processes, as ps prints it.
std::string ProcessTable(const std::vector<ProcessUsage>& processes, uint64_t ticks_per_second,
                         uint64_t now_ticks);

}  // namespace parallelrun::agent
