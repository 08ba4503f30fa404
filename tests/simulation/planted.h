// Deliberate faults, to prove that the simulation can fail. faults/*.patch plant them in copies of
// the sources, of which simulate_faulty alone is built, and which see this header first: there each
// asks whether it is at work. The product's own sources know nothing of it. One thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace parallelrun::simulation {

// A fault by its name, which is its patch's. As a number: hot code asks.
constexpr uint64_t FaultId(std::string_view name) {
  uint64_t id = 14695981039346656037U;  // FNV-1a
  for (const char c : name) id = (id ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return id;
}

struct FaultName {
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval FaultName(const char* name) : id(FaultId(name)) {}
  uint64_t id;
};

extern uint64_t planted_fault;  // the one that is at work; 0: none

inline bool Planted(FaultName fault) { return fault.id == planted_fault; }

}  // namespace parallelrun::simulation
