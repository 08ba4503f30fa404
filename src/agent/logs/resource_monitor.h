// ResourceMonitor writes what the node and its worker processes use, every so often: at its start,
// each interval, and at its end. The files are node_resource_usage.csv,
// processes_resource_usage.csv, node_disk_usage.csv and os/%Y%m%d%H/processes_%M, below `folder`
// (logs/perf/<node>).
//
// Thread-safety: made and destroyed on one thread; SetProcess and Forget from any; works on a
// thread of its own. What cannot be read or written is left out.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "agent/logs/resource_usage.h"
#include "agent/processes/memory_group.h"
#include "base/thread.h"
#include "base/time.h"

namespace parallelrun {

struct ResourceMonitorOptions {
  std::string folder;
  Duration interval{0};            // above 0
  std::vector<std::string> disks;  // folders whose file systems are looked at
};

class ResourceMonitor {
 public:
  explicit ResourceMonitor(ResourceMonitorOptions options);
  ~ResourceMonitor();
  ResourceMonitor(const ResourceMonitor&) = delete;
  ResourceMonitor& operator=(const ResourceMonitor&) = delete;

  void SetProcess(const std::string& name, int pid);
  void Forget(const std::string& name);

 private:
  void Run();
  void Sample();
  void SampleNode(WallTime now);
  void SampleProcesses(WallTime now);
  void SampleDisks(WallTime now);

  const ResourceMonitorOptions options_;
  const SystemClock clock_;
  const MemoryGroup memory_;
  // Of the reading before; only on the thread.
  CpuTimes cpu_;
  std::map<int, uint64_t> process_ticks_;  // by PID
  uint64_t read_at_ticks_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> processes_;
  bool stop_ = false;
  Thread thread_;
};

}  // namespace parallelrun
