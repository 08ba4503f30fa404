// ResourceMonitor writes what the node and its worker processes use, every so often: at its start,
// each interval, and at its end. The files are node_resource_usage.csv,
// processes_resource_usage.csv, node_disk_usage.csv and os/%Y%m%d%H/processes_%M, below `folder`
// (logs/perf/<node>).
//
// Thread-safety: made and destroyed on one thread; SetProcess and Forget from any; works on a
// thread of its own. What cannot be read or written is left out; of what cannot be written the log
// tells, once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/thread.h"
#include "base/time.h"

namespace parallelrun::agent {

struct ResourceMonitorOptions {
  std::string folder;
  Duration interval{0};             // above 0
  std::vector<std::string> disks;   // folders whose file systems are looked at
  Duration end_limit = seconds(5);  // at its end; reading all processes takes its time
};

class ResourceMonitor {
 public:
  ResourceMonitor(std::shared_ptr<Files> files, ResourceMonitorOptions options);
  // Where a disk hangs, the thread is left after `end_limit` (Thread::JoinOrLeave).
  ~ResourceMonitor();
  ResourceMonitor(const ResourceMonitor&) = delete;
  ResourceMonitor& operator=(const ResourceMonitor&) = delete;

  void SetProcess(const std::string& name, int pid);
  void Forget(const std::string& name);

 private:
  class Samples;  // what the thread does and has
  const Duration end_limit_;
  const std::shared_ptr<Samples> samples_;
  Thread thread_;
};

}  // namespace parallelrun::agent
