// simulate_operator --seeds 1-2000 | --seed 17 --trace
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "tests/simulation/operator/world.h"

int main(int argc, char** argv) {
  CLI::App app("Runs the operator's planner against a simulated API server.");
  std::string seeds = "1-2000";
  uint64_t seed = 0;
  bool trace = false;
  app.add_option("--seeds", seeds, "FIRST-LAST");
  app.add_option("--seed", seed, "one of them");
  app.add_flag("--trace", trace, "print what happens");
  CLI11_PARSE(app, argc, argv);
  const size_t dash = seeds.find('-');
  uint64_t first = std::stoull(seeds);
  uint64_t last = dash == std::string::npos ? first : std::stoull(seeds.substr(dash + 1));
  if (seed != 0) first = last = seed;

  const auto start = std::chrono::steady_clock::now();
  uint64_t plans = 0;
  int failures = 0;
  for (uint64_t one = first; one <= last && failures < 10; ++one) {
    parallelrun::OperatorWorld world(one, trace);
    const std::string violation = world.Run();
    plans += world.plans();
    if (violation.empty()) continue;
    ++failures;
    fmt::print("seed {}: {}\n", one, violation);
  }
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{} seeds, {} plans, {:.0f} seeds/s, {:.0f} plans/s, {} violated\n", last - first + 1,
             plans, static_cast<double>(last - first + 1) / took, static_cast<double>(plans) / took,
             failures);
  return failures == 0 ? 0 : 1;
}
