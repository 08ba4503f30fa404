#include "agent/logs/resource_usage.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>

#include "base/escape.h"

namespace parallelrun::agent {
namespace {

constexpr uint64_t kSector = 512;  // of /proc/diskstats, whatever the disk's are
constexpr size_t kMaxCommand = 200;

double Mb(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

double Percent(uint64_t part, uint64_t all) {
  return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
}

// Takes the next line of `text`; false at its end.
bool TakeLine(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const size_t end = std::min(text.find('\n'), text.size());
  line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return true;
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

uint64_t Number(std::string_view word) {
  uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

uint64_t NumberAt(const std::vector<std::string_view>& words, size_t index) {
  return index < words.size() ? Number(words[index]) : 0;
}

// A field that people chose, such as a path.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace

const char* const kNodeUsageHeader =
    "Utc Time,Cpu Percent,Memory Total (MB),Memory Available (MB),Memory Used (MB),"
    "Memory Used Percent,Disk Io Read Count,Disk Io Write Count,Disk Io Read (MB),"
    "Disk Io Write (MB),Network Sent (MB),Network Recv (MB),# TCP,# UDP\n";
const char* const kProcessUsageHeader =
    "Utc Time,Process,PID,Cpu Percent,Memory Used (MB),Memory Virtual (MB),# Threads,"
    "Disk Io Read (MB),Disk Io Write (MB)\n";
const char* const kDiskUsageHeader =
    "Utc Time,Path,Disk Total (MB),Disk Available (MB),Disk Used (MB),Disk Used Percent\n";

CpuTimes ParseCpuTimes(std::string_view stat) {
  std::string_view line;
  CpuTimes times;
  if (!TakeLine(stat, line) || !line.starts_with("cpu ")) return times;
  // user nice system idle iowait irq softirq steal; guest times are in user and nice already.
  const std::vector<std::string_view> words = Words(line);
  for (size_t i = 1; i < words.size() && i <= 8; ++i) {
    times.total += Number(words[i]);
    if (i != 4 && i != 5) times.busy += Number(words[i]);
  }
  return times;
}

double CpuPercent(const CpuTimes& before, const CpuTimes& now) {
  if (now.total <= before.total || now.busy < before.busy) return 0;
  return Percent(now.busy - before.busy, now.total - before.total);
}

void ParseMemInfo(std::string_view meminfo, NodeUsage& usage) {
  for (std::string_view line; TakeLine(meminfo, line);) {
    const std::vector<std::string_view> words = Words(line);
    if (words.size() < 2) continue;
    if (words[0] == "MemTotal:") usage.memory_total = Number(words[1]) << 10;
    if (words[0] == "MemAvailable:") usage.memory_available = Number(words[1]) << 10;
  }
}

void ParseDiskStats(std::string_view diskstats, NodeUsage& usage) {
  std::string disk;
  for (std::string_view line; TakeLine(diskstats, line);) {
    const std::vector<std::string_view> words = Words(line);
    if (words.size() < 10) continue;
    const std::string_view name = words[2];
    // What is made of other disks, or of memory.
    if (name.starts_with("loop") || name.starts_with("ram") || name.starts_with("dm-") ||
        name.starts_with("md") || name.starts_with("zram")) {
      continue;
    }
    // Partitions follow their disk: sda1, nvme0n1p1.
    if (!disk.empty() && name.size() > disk.size() && name.starts_with(disk)) continue;
    disk = name;
    usage.disk_reads += Number(words[3]);
    usage.disk_read_bytes += Number(words[5]) * kSector;
    usage.disk_writes += Number(words[7]);
    usage.disk_written_bytes += Number(words[9]) * kSector;
  }
}

void ParseNetDev(std::string_view dev, NodeUsage& usage) {
  for (std::string_view line; TakeLine(dev, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::vector<std::string_view> name = Words(line.substr(0, colon));
    if (name.size() != 1 || name[0] == "lo") continue;
    const std::vector<std::string_view> counters = Words(line.substr(colon + 1));
    usage.net_received_bytes += NumberAt(counters, 0);
    usage.net_sent_bytes += NumberAt(counters, 8);
  }
}

void ParseSockets(std::string_view sockstat, NodeUsage& usage) {
  for (std::string_view line; TakeLine(sockstat, line);) {
    const std::vector<std::string_view> words = Words(line);
    if (words.size() < 3 || words[1] != "inuse") continue;
    if (words[0] == "TCP:" || words[0] == "TCP6:") usage.tcp_sockets += Number(words[2]);
    if (words[0] == "UDP:" || words[0] == "UDP6:") usage.udp_sockets += Number(words[2]);
  }
}

std::optional<ProcessUsage> ParseProcessStat(std::string_view stat, uint64_t page_bytes) {
  // 7 (name, which may hold anything) S 1 …
  const size_t open = stat.find('(');
  const size_t close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  const std::vector<std::string_view> words = Words(stat.substr(close + 1));
  if (words.size() < 22) return std::nullopt;
  ProcessUsage usage;
  usage.pid = static_cast<int>(Number(stat));
  usage.name = stat.substr(open + 1, close - open - 1);
  usage.state = words[0][0];
  usage.parent = static_cast<int>(Number(words[1]));
  usage.cpu_ticks = Number(words[11]) + Number(words[12]);
  usage.threads = Number(words[17]);
  usage.start_ticks = Number(words[19]);
  usage.virtual_bytes = Number(words[20]);
  usage.memory_bytes = Number(words[21]) * page_bytes;
  return usage;
}

void ParseProcessIo(std::string_view io, ProcessUsage& usage) {
  for (std::string_view line; TakeLine(io, line);) {
    const std::vector<std::string_view> words = Words(line);
    if (words.size() < 2) continue;
    if (words[0] == "read_bytes:") usage.read_bytes = Number(words[1]);
    if (words[0] == "write_bytes:") usage.written_bytes = Number(words[1]);
  }
}

std::string NodeUsageLine(const NodeUsage& usage, WallTime now) {
  const uint64_t used = usage.memory_total - std::min(usage.memory_total, usage.memory_available);
  return fmt::format(
      "{},{:.1f},{:.1f},{:.1f},{:.1f},{:.1f},{},{},{:.1f},{:.1f},{:.1f},{:.1f},{},{}\n",
      Rfc3339(now), usage.cpu_percent, Mb(usage.memory_total), Mb(usage.memory_available), Mb(used),
      Percent(used, usage.memory_total), usage.disk_reads, usage.disk_writes,
      Mb(usage.disk_read_bytes), Mb(usage.disk_written_bytes), Mb(usage.net_sent_bytes),
      Mb(usage.net_received_bytes), usage.tcp_sockets, usage.udp_sockets);
}

std::string ProcessUsageLine(const std::string& name, const ProcessUsage& usage, double cpu_percent,
                             WallTime now) {
  return fmt::format("{},{},{},{:.1f},{:.1f},{:.1f},{},{:.1f},{:.1f}\n", Rfc3339(now), name,
                     usage.pid, cpu_percent, Mb(usage.memory_bytes), Mb(usage.virtual_bytes),
                     usage.threads, Mb(usage.read_bytes), Mb(usage.written_bytes));
}

std::string DiskUsageLine(const DiskUsage& usage, WallTime now) {
  return fmt::format("{},{},{:.1f},{:.1f},{:.1f},{:.1f}\n", Rfc3339(now), Quoted(usage.path),
                     Mb(usage.total), Mb(usage.available), Mb(usage.used),
                     Percent(usage.used, usage.used + usage.available));
}

std::set<int> ProcessesBelow(const std::vector<ProcessUsage>& processes, int pid) {
  std::set<int> below = {pid};
  for (size_t known = 0; known != below.size();) {
    known = below.size();
    for (const ProcessUsage& process : processes) {
      if (below.contains(process.parent)) below.insert(process.pid);
    }
  }
  return below;
}

std::string ProcessTable(const std::vector<ProcessUsage>& processes, uint64_t ticks_per_second,
                         uint64_t now_ticks) {
  std::string table =
      fmt::format("{:>6} {:>7} {:>7} {:>5} {:>10} {:>10} {:>4} {:>4} {:>10} {:>10} {}\n", "UID",
                  "PID", "PPID", "%CPU", "RSS", "VSZ", "STAT", "THR", "ELAPSED", "TIME", "COMMAND");
  const uint64_t second = std::max<uint64_t>(ticks_per_second, 1);
  for (const ProcessUsage& p : processes) {
    const uint64_t elapsed = now_ticks - std::min(now_ticks, p.start_ticks);
    table += fmt::format(
        "{:>6} {:>7} {:>7} {:>5.1f} {:>10} {:>10} {:>4} {:>4} {:>10} {:>10} {}\n", p.user, p.pid,
        p.parent, Percent(p.cpu_ticks, elapsed), p.memory_bytes >> 10, p.virtual_bytes >> 10,
        p.state, p.threads, elapsed / second, p.cpu_ticks / second,
        Printable(p.command.empty() ? "[" + p.name + "]" : p.command, kMaxCommand));
  }
  return table;
}

}  // namespace parallelrun::agent
