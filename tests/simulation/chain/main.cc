// simulate_chain --seeds FROM-TO [--recheck 1%]: schedules of a ledger in a store, one a seed.
// simulate_chain --seed N --trace: one of them, told event by event.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <sstream>
#include <string>

#include "tests/simulation/chain/chain_world.h"
#include "tests/simulation/planted.h"

namespace parallelrun {
namespace simulation {
namespace {

ChainOutcome RunChain(uint64_t seed, bool trace) { return ChainWorld(seed, trace).Run(); }

int RunChains(uint64_t from, uint64_t to, double recheck) {
  ChainOutcome totals;
  uint64_t rechecked = 0;
  FaultRng rng(from);
  for (uint64_t seed = from; seed <= to; ++seed) {
    const ChainOutcome outcome = RunChain(seed, false);
    totals.events += outcome.events;
    totals.claims += outcome.claims;
    totals.acknowledged += outcome.acknowledged;
    totals.superseded += outcome.superseded;
    totals.damaged += outcome.damaged;
    if (!outcome.violation.empty()) {
      fmt::print("seed {}: violated: {}\n  see it: simulate_chain --seed {} --trace\n", seed,
                 outcome.violation, seed);
      return 1;
    }
    if (static_cast<double>(rng.Below(10'000)) >= recheck * 100) continue;
    ++rechecked;
    if (RunChain(seed, false).hash != outcome.hash) {
      fmt::print("seed {}: two runs differ\n", seed);
      return 1;
    }
  }
  fmt::print(
      "{} schedules, {} events, {} claims, {} records acknowledged, {} coordinators superseded, {} "
      "damaged chains refused, {} rechecked, 0 violated\n",
      to - from + 1, totals.events, totals.claims, totals.acknowledged, totals.superseded,
      totals.damaged, rechecked);
  return 0;
}

}  // namespace

#ifdef PARALLELRUN_FAULTS

uint64_t planted_fault = 0;

namespace {

// Each deliberate fault must be caught before seed `to`.
int ProveChains(uint64_t from, uint64_t to) {
  bool all = true;
  std::istringstream names(PARALLELRUN_FAULTS);
  for (std::string name; names >> name;) {
    planted_fault = FaultId(name);
    uint64_t seed = from;
    std::string violation;
    for (; seed <= to && violation.empty(); ++seed) violation = RunChain(seed, false).violation;
    all = all && !violation.empty();
    fmt::print("{:<26} {}\n", name,
               violation.empty() ? fmt::format("NOT caught by {} seeds", to - from + 1)
                                 : fmt::format("caught by seed {}: {}", seed - 1, violation));
  }
  return all ? 0 : 1;
}

}  // namespace
#endif

}  // namespace simulation

namespace {

int Main(int argc, char** argv) {
  CLI::App app("Runs coordinators that share a ledger in a store, on a simulated clock.");
  std::string seeds;
  std::string recheck = "0%";
  uint64_t seed = 0;
  bool trace = false;
  auto* range = app.add_option("--seeds", seeds, "FROM-TO");
  auto* one = app.add_option("--seed", seed, "one seed")->excludes(range);
  app.add_flag("--trace", trace, "tell what happens");
  app.add_option("--recheck", recheck, "share of the seeds that are run twice and compared, as 1%");
#ifdef PARALLELRUN_FAULTS
  bool prove = false;
  std::string fault;
  app.add_flag("--prove", prove, "each deliberate fault must be caught within the seeds");
  app.add_option("--fault", fault, "this one is at work");
#endif
  CLI11_PARSE(app, argc, argv);
#ifdef PARALLELRUN_FAULTS
  if (!fault.empty()) simulation::planted_fault = simulation::FaultId(fault);
#endif
  if (one->count() > 0) {
    const simulation::ChainOutcome outcome = simulation::RunChain(seed, trace);
    fmt::print("{}\n", outcome.violation.empty()
                           ? fmt::format("nothing violated; {} events, {} claims", outcome.events,
                                         outcome.claims)
                           : "violated: " + outcome.violation);
    return outcome.violation.empty() ? 0 : 1;
  }
  const size_t dash = seeds.find('-');
  if (dash == std::string::npos) {
    fmt::print(stderr, "--seeds takes FROM-TO, as in --seeds 1-10000\n");
    return 2;
  }
  const uint64_t from = std::stoull(seeds.substr(0, dash));
  const uint64_t to = std::stoull(seeds.substr(dash + 1));
#ifdef PARALLELRUN_FAULTS
  if (prove) return simulation::ProveChains(from, to);
#endif
  return simulation::RunChains(from, to, std::stod(recheck));
}

}  // namespace
}  // namespace parallelrun

int main(int argc, char** argv) { return parallelrun::Main(argc, argv); }
