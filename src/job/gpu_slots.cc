#include "job/gpu_slots.h"

#include <algorithm>
#include <utility>

namespace parallelrun::job {
namespace {

std::vector<std::string_view> Words(std::string_view list) {
  std::vector<std::string_view> words;
  for (;;) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view word = list.substr(0, comma);
    while (!word.empty() && word.front() == ' ') word.remove_prefix(1);
    while (!word.empty() && word.back() == ' ') word.remove_suffix(1);
    words.push_back(word);
    if (comma == list.size()) return words;
    list.remove_prefix(comma + 1);
  }
}

bool IsIndex(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

bool IsId(std::string_view word) { return word.starts_with("GPU-") || word.starts_with("MIG-"); }

std::vector<std::string> Indices(size_t count) {
  std::vector<std::string> devices;
  for (size_t i = 0; i < count; ++i) devices.push_back(std::to_string(i));
  return devices;
}

}  // namespace

std::optional<std::vector<std::string>> GpuDevices(std::optional<std::string_view> cuda,
                                                   std::optional<std::string_view> nvidia,
                                                   uint32_t found) {
  std::vector<std::string> devices;
  const auto add = [&devices](std::string_view word) {
    if (std::find(devices.begin(), devices.end(), word) == devices.end())
      devices.emplace_back(word);
  };
  if (cuda) {
    for (const std::string_view word : Words(*cuda)) {
      if (!IsIndex(word) && !IsId(word)) break;
      add(word);
    }
    return devices;
  }
  if (nvidia) {
    const std::vector<std::string_view> words = Words(*nvidia);
    if (std::all_of(words.begin(), words.end(), IsId)) {
      std::for_each(words.begin(), words.end(), add);
      return devices;
    }
    // "0,2" of the host, "0:1" for a slice of its first one.
    const auto is_index = [](std::string_view word) {
      return !word.empty() && word.find_first_not_of("0123456789:") == std::string_view::npos;
    };
    if (found > 0 && std::all_of(words.begin(), words.end(), is_index)) {
      return Indices(words.size());
    }
  }
  if (found == 0) return std::nullopt;
  return Indices(found);
}

GpuSlots::GpuSlots(std::vector<std::string> devices) {
  for (std::string& device : devices) slots_.push_back({std::move(device), {}});
}

std::optional<std::string> GpuSlots::Take(uint32_t process, uint32_t shared) {
  const auto least = std::min_element(
      slots_.begin(), slots_.end(),
      [](const Slot& a, const Slot& b) { return a.processes.size() < b.processes.size(); });
  if (least == slots_.end() || least->processes.size() >= shared) return std::nullopt;
  least->processes.insert(process);
  return least->device;
}

void GpuSlots::Free(uint32_t process) {
  for (Slot& slot : slots_) slot.processes.erase(process);
}

}  // namespace parallelrun::job
