#include "operator/process_usage.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <sstream>

#include "base/small_file.h"

namespace parallelrun::operators {

ProcessUsage OwnUsage() {
  ProcessUsage out;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      out.cpu_seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    }
  }
  double size = 0;  // both in pages
  double resident = 0;
  if (std::istringstream(OrEmpty(ReadSmallFile("/proc/self/statm", 4096))) >> size >> resident) {
    out.resident_bytes = resident * static_cast<double>(sysconf(_SC_PAGESIZE));
  }
  return out;
}

std::string ProcessText(const ProcessUsage& usage) {
  prometheus::Registry registry;
  prometheus::BuildCounter()
      .Name("process_cpu_seconds_total")
      .Help("Processor time of the operator.")
      .Register(registry)
      .Add({})
      .Increment(usage.cpu_seconds);
  prometheus::BuildGauge()
      .Name("process_resident_memory_bytes")
      .Help("Memory of the operator.")
      .Register(registry)
      .Add({})
      .Set(usage.resident_bytes);
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

}  // namespace parallelrun::operators
