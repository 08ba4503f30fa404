// Internal to this bench: the coordinator under measurement, in a process of its own, so that its
// processor time is its own and it can be killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace parallelrun::bench {

struct CoordinatorSettings {
  std::string folder;  // state/, logs/, tls.crt and tls.key are in it
  std::string key;     // of the job
  int listen_fd = -1;
  uint32_t nodes = 0;
  uint32_t processes = 0;
  uint64_t batches = 0;
};

// Writes a self-signed certificate for 127.0.0.1 and its key into the folder.
void WriteCertificate(const std::string& folder);

// A socket on a port of 127.0.0.1 that is free; it outlives coordinators.
int Listen(uint16_t& port);

// Starts this program again as a coordinator.
pid_t StartCoordinator(const CoordinatorSettings& settings);
// What that one does; returns its exit status.
int RunCoordinator(const CoordinatorSettings& settings);

// Seconds of processor time that a process has used, and the most memory that it had, in MB.
double ProcessorSeconds(pid_t process);
double PeakMegabytes(pid_t process);

}  // namespace parallelrun::bench
