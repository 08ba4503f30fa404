// Which GPU each worker process of a node gets: one device each, or one for several where the job
// says so, until they are used up, none for the others; the place of a process that has ended goes
// to the next one that starts. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::job {

// The devices to hand out, as CUDA_VISIBLE_DEVICES names them; nullopt when there is no sign of
// any GPU. The arguments are the variables of the node, nullopt where unset, and how many GPUs it
// has in /dev.
//   cuda    is taken word by word (indices, GPU-… and MIG-… ids) up to the first word that CUDA
//           would not take either; so "" and "-1" are no devices at all.
//   nvidia  gives ids word by word. Its indices are the host's, while a container counts from 0:
//           they only tell how many there are. "all", "void" and other words say nothing.
std::optional<std::vector<std::string>> GpuDevices(std::optional<std::string_view> cuda,
                                                   std::optional<std::string_view> nvidia,
                                                   uint32_t found);

class GpuSlots {
 public:
  explicit GpuSlots(std::vector<std::string> devices);

  // Of the devices that fewer than `shared` processes have, the first of those that fewest have: it
  // is this process's too until Free. nullopt when all are taken.
  std::optional<std::string> Take(uint32_t process, uint32_t shared);
  // A process that has none is ignored.
  void Free(uint32_t process);
  size_t count() const { return slots_.size(); }

 private:
  struct Slot {
    std::string device;
    std::set<uint32_t> processes;
  };
  std::vector<Slot> slots_;
};

}  // namespace parallelrun::job
