// simulate_operator --seeds 1-2000 | --seed 17 --trace
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>

#include "tests/simulation/operator/cluster.h"

namespace parallelrun::simulation {
namespace {

struct Totals {
  uint64_t plans = 0, events = 0, epochs = 0, succeeded = 0, rechecked = 0;
};

RunOutcome RunSeed(uint64_t seed, bool trace, uint64_t& plans) {
  World world(DrawOnCluster(seed), trace);
  Cluster cluster(world);
  RunOutcome outcome = world.Run(cluster);
  if (outcome.violation.empty()) cluster.CheckEnd();
  outcome.violation = world.oracle().violation();
  plans += cluster.plans();
  return outcome;
}

// Why the seed is a bad one, or "".
std::string RunOne(uint64_t seed, bool trace, bool recheck, Totals& totals) {
  const RunOutcome outcome = RunSeed(seed, trace, totals.plans);
  totals.events += outcome.events;
  totals.epochs += outcome.epochs;
  totals.succeeded += outcome.succeeded ? 1 : 0;
  if (!outcome.violation.empty() || !recheck) return outcome.violation;
  ++totals.rechecked;
  uint64_t ignored = 0;
  return RunSeed(seed, false, ignored).hash == outcome.hash ? "" : "two runs differ";
}

int Main(int argc, char** argv) {
  CLI::App app("Runs the operator's planner with the coordinators and agents of its pods.");
  std::string seeds = "1-1000";
  uint64_t seed = 0;
  bool trace = false;
  bool go_on = false;
  app.add_option("--seeds", seeds, "FIRST-LAST");
  app.add_option("--seed", seed, "one of them");
  app.add_flag("--trace", trace, "tell what happens");
  app.add_flag("--go-on", go_on, "do not stop at the first violation");
  CLI11_PARSE(app, argc, argv);
  const size_t dash = seeds.find('-');
  uint64_t first = std::stoull(seeds);
  uint64_t last = dash == std::string::npos ? first : std::stoull(seeds.substr(dash + 1));
  if (seed != 0) first = last = seed;

  const auto start = std::chrono::steady_clock::now();
  Totals totals;
  uint64_t bad = 0;
  for (uint64_t one = first; one <= last && (bad == 0 || go_on); ++one) {
    const std::string violation = RunOne(one, trace, one % 100 == 0, totals);
    if (violation.empty()) continue;
    ++bad;
    fmt::print("seed {}: violated: {}\n  see it: simulate_operator --seed {} --trace\n", one,
               violation, one);
  }
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(
      "{} schedules, {} events, {} plans, {} epochs, {} jobs succeeded, {} rechecked, {} violated; "
      "{:.1f} s, {:.0f} schedules/s\n",
      last - first + 1, totals.events, totals.plans, totals.epochs, totals.succeeded,
      totals.rechecked, bad, took, static_cast<double>(last - first + 1) / took);
  return bad == 0 ? 0 : 1;
}

}  // namespace
}  // namespace parallelrun::simulation

int main(int argc, char** argv) { return parallelrun::simulation::Main(argc, argv); }
