// The line that shows on a terminal how far a run is: a bar, and as much of the rest as there is
// room for, what matters most first. Made from the coordinator's progress
// (docs/coordinator-api.md). Names in it are escaped. Pure.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/time.h"

namespace parallelrun::cli {

// In place of a count, while nothing is listed.
inline constexpr char kListing[] = "listing the input";
// That no node is there is no news at the start; later it is.
inline bool NodesAreTold(size_t nodes, std::string_view state) {
  return nodes > 0 || state != "Starting";
}
// What has run for so long is worth a word.
inline constexpr double kSlowSeconds = 5;

struct BarStyle {
  size_t columns = 80;  // of the terminal; the last one stays free
  bool colour = false;
};

// `elapsed` since the command started.
std::string ProgressBar(const nlohmann::json& progress, Duration elapsed, const BarStyle& style);

}  // namespace parallelrun::cli
