// Advice on how a job is run, with the figures that it follows from. What is counted how, and from
// which share on it is worth a word: docs/report.md, "Advice". Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/page/figures.h"
#include "coordinator/page/waits.h"

namespace parallelrun::coordinator {

struct AdviceFacts {
  Figures::Sums total;
  uint64_t process_ns = 0;
  std::vector<std::pair<Figures::ProcessName, Figures::Sums>> processes;
  std::optional<Waits::Times> waits;  // none: not of the whole run
  // spec.miniBatchSize where it is a number of items; 0: a size in bytes, or not known.
  uint64_t mini_batch_size = 0;
  bool async_mode = false;
};

struct Advice {
  std::string found;   // what was measured
  std::string change;  // what to do; empty where nothing is wrong
};

// The most valuable first; one that says that nothing stands out where there is nothing else.
// Nothing at all while no attempt has ended.
std::vector<Advice> AdviceOn(const AdviceFacts& facts);

}  // namespace parallelrun::coordinator
