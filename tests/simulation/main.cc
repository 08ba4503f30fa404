// simulate --seeds FROM-TO [--recheck 1%] [--mode safety|liveness|both]: runs whole jobs, one a
// seed. simulate --seed N --trace: one of them, told event by event.
// simulate --nodes N: one job of many nodes; says what its coordinator takes of this machine.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>

#include "tests/simulation/plain_supervisor.h"
#include "tests/simulation/planted.h"
#include "tests/simulation/world.h"

namespace parallelrun {
namespace simulation {
namespace {

struct Totals {
  uint64_t schedules = 0;
  uint64_t events = 0;
  uint64_t epochs = 0;
  uint64_t over = 0;
  uint64_t succeeded = 0;
  uint64_t rechecked = 0;
  std::array<uint64_t, kFaults> faults{};
};

RunOutcome RunSeed(uint64_t seed, bool liveness, bool trace) {
  World world(Draw(seed, liveness), trace);
  PlainSupervisor supervisor(world);
  return world.Run(supervisor);
}

std::string Replay(uint64_t seed, bool liveness) {
  return fmt::format("simulate --seed {} --mode {} --trace", seed,
                     liveness ? "liveness" : "safety");
}

// False at the first violation, which is printed.
bool RunOne(uint64_t seed, bool liveness, bool recheck, Totals& totals) {
  const RunOutcome outcome = RunSeed(seed, liveness, false);
  ++totals.schedules;
  totals.events += outcome.events;
  totals.epochs += outcome.epochs;
  totals.over += outcome.job_over ? 1 : 0;
  totals.succeeded += outcome.succeeded ? 1 : 0;
  for (size_t i = 0; i < kFaults; ++i) totals.faults[i] += outcome.faults[i];
  if (!outcome.violation.empty()) {
    fmt::print("seed {}: violated: {}\n  see it: {}\n", seed, outcome.violation,
               Replay(seed, liveness));
    return false;
  }
  if (recheck) {
    ++totals.rechecked;
    if (RunSeed(seed, liveness, false).hash != outcome.hash) {
      fmt::print("seed {}: two runs differ\n  see it: {}\n", seed, Replay(seed, liveness));
      return false;
    }
  }
  return true;
}

int RunAll(uint64_t from, uint64_t to, const std::string& mode, double recheck, bool go_on) {
  const auto begin = std::chrono::steady_clock::now();
  Totals totals;
  FaultRng rng(from);
  uint64_t bad = 0;
  for (uint64_t seed = from; seed <= to && (bad == 0 || go_on); ++seed) {
    // Every fourth run is one that must come to an end.
    const bool liveness = mode == "liveness" || (mode == "both" && seed % 4 == 0);
    const bool again = static_cast<double>(rng.Below(10'000)) < recheck * 100;
    if (!RunOne(seed, liveness, again, totals)) ++bad;
  }
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print(
      "{} schedules, {} events, {} epochs, {} jobs ended ({} succeeded), {} rechecked, {} "
      "violated; "
      "{:.1f} s, {:.0f} schedules/s\n",
      totals.schedules, totals.events, totals.epochs, totals.over, totals.succeeded,
      totals.rechecked, bad, took, static_cast<double>(totals.schedules) / took);
  uint64_t faults = 0;
  for (size_t i = 0; i < kFaults; ++i) {
    fmt::print("  {:>10}  {}\n", totals.faults[i], Name(static_cast<Fault>(i)));
    faults += totals.faults[i];
  }
  fmt::print("  {:>10}  faults in all\n", faults);
  return bad == 0 ? 0 : 1;
}

int RunCrowd(uint64_t seed, uint32_t nodes, bool trace) {
  const auto begin = std::chrono::steady_clock::now();
  World world(Crowd(seed, nodes), trace);
  PlainSupervisor supervisor(world);
  const RunOutcome outcome = world.Run(supervisor);
  const double took =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{} nodes: {}; {} events, {} epochs, {} virtual, {:.1f} s\n", nodes,
             !outcome.violation.empty() ? "violated: " + outcome.violation
             : outcome.succeeded        ? "succeeded"
                                        : "failed",
             outcome.events, outcome.epochs, HumanDuration(outcome.time), took);
  const double each = ToSeconds(outcome.coordinating) * 1e6 /
                      static_cast<double>(std::max<uint64_t>(outcome.coordinator_events, 1));
  fmt::print("coordinator: {} events, {:.1f} us each, {:.1f} ms the longest, {:.0f} % of a core\n",
             outcome.coordinator_events, each, ToSeconds(outcome.longest) * 1e3,
             100 * ToSeconds(outcome.coordinating) / ToSeconds(outcome.time));
  return outcome.violation.empty() ? 0 : 1;
}

}  // namespace
}  // namespace simulation

#ifdef PARALLELRUN_FAULTS
namespace simulation {

uint64_t planted_fault = 0;

namespace {

// Each deliberate fault must be caught before seed `to`.
int Prove(uint64_t from, uint64_t to, const std::string& only) {
  bool all = true;
  std::istringstream names(PARALLELRUN_FAULTS);
  for (std::string name; names >> name;) {
    if (!only.empty() && only != name) continue;
    planted_fault = FaultId(name);
    uint64_t seed = from;
    std::string violation;
    for (; seed <= to && violation.empty(); ++seed) {
      violation = RunSeed(seed, seed % 4 == 0, false).violation;
    }
    all = all && !violation.empty();
    fmt::print("{:<26} {}\n", name,
               violation.empty() ? fmt::format("NOT caught by {} seeds", to - from + 1)
                                 : fmt::format("caught by seed {}: {}", seed - 1, violation));
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace simulation
#endif

namespace {

int Main(int argc, char** argv) {
  CLI::App app("Runs whole jobs of ParallelRun on a simulated clock, network and disk.");
  std::string seeds;
  std::string recheck = "0%";
  std::string mode = "both";
  uint64_t seed = 0;
  uint32_t nodes = 0;
  bool trace = false;
  bool go_on = false;
  auto* range = app.add_option("--seeds", seeds, "FROM-TO");
  auto* one = app.add_option("--seed", seed, "one seed")->excludes(range);
  app.add_option("--nodes", nodes, "one job of so many nodes, timed")->excludes(range);
  app.add_flag("--trace", trace, "tell what happens");
  app.add_flag("--go-on", go_on, "do not stop at the first violation");
  app.add_option("--recheck", recheck, "share of the seeds that are run twice and compared, as 1%");
  app.add_option("--mode", mode)->check(CLI::IsMember({"safety", "liveness", "both"}));
#ifdef PARALLELRUN_FAULTS
  bool prove = false;
  std::string fault;
  app.add_flag("--prove", prove, "each deliberate fault must be caught within the seeds");
  app.add_option("--fault", fault, "only this one");
#endif
  CLI11_PARSE(app, argc, argv);
#ifdef PARALLELRUN_FAULTS
  if (!fault.empty()) simulation::planted_fault = simulation::FaultId(fault);
#endif
  if (nodes > 0) return simulation::RunCrowd(seed, nodes, trace);
  if (one->count() > 0) {
    const bool liveness = mode == "liveness" || (mode == "both" && seed % 4 == 0);
    const simulation::RunOutcome outcome = simulation::RunSeed(seed, liveness, trace);
    fmt::print("{}\n",
               outcome.violation.empty()
                   ? fmt::format("nothing violated; {} events, {} epochs, {} virtual, {}",
                                 outcome.events, outcome.epochs, HumanDuration(outcome.time),
                                 !outcome.job_over   ? "no verdict"
                                 : outcome.succeeded ? "succeeded"
                                                     : "failed")
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
  if (prove) return simulation::Prove(from, to, fault);
#endif
  return simulation::RunAll(from, to, mode, std::stod(recheck), go_on);
}

}  // namespace
}  // namespace parallelrun

int main(int argc, char** argv) { return parallelrun::Main(argc, argv); }
