#include "tests/simulation/scenario.h"

#include <cmath>

namespace parallelrun::simulation {

const char* Name(Fault fault) {
  static constexpr const char* kNames[] = {"kill coordinator",
                                           "crash machine",
                                           "second coordinator",
                                           "freeze coordinator",
                                           "freeze agent",
                                           "kill agent",
                                           "second agent",
                                           "cut off",
                                           "disk full",
                                           "disk error",
                                           "die inside",
                                           "come between",
                                           "input grows",
                                           "drain coordinator",
                                           "end coordinator",
                                           "drain agent",
                                           "scale",
                                           "new job",
                                           "foreign file",
                                           "ledger gone",
                                           "folder gone",
                                           "message lost",
                                           "message duplicated"};
  static_assert(std::size(kNames) == kFaults);
  return kNames[static_cast<size_t>(fault)];
}

const char* Name(BadNode bad) {
  switch (bad) {
    case BadNode::kNone: break;
    case BadNode::kCutOff: return "is cut off for ever";
    case BadNode::kCrashes: return "crashes soon after each start";
    case BadNode::kFailsInit: return "fails each init()";
    case BadNode::kNeverEnds: return "never ends a run()";
    case BadNode::kDies: return "dies in each run()";
  }
  return "is well";
}

namespace {

// From an agent's own deadline to the end of its process: it looks every 100 ms.
constexpr Duration kLateKill = milliseconds(120);

// All but what excuses two nodes that are in run() of one mini-batch.
void KeepApart(Scenario& s) {
  s.speculation = false;
  s.pods = true;
  s.new_jobs = 0;
  s.weights[static_cast<size_t>(Fault::kFreezeAgent)] = 0;
  s.weights[static_cast<size_t>(Fault::kSecondAgent)] = 0;
  s.weights[static_cast<size_t>(Fault::kScale)] = 0;
}

// Nodes that are cut off while run() takes long.
void CutOff(Scenario& s) {
  KeepApart(s);
  s.killers = 0;
  s.weights.fill(0);
  s.weights[static_cast<size_t>(Fault::kKillCoordinator)] = 2;
  s.weights[static_cast<size_t>(Fault::kCutOff)] = 20;
  s.nodes += 1;
  s.run_mean = s.lease;
  s.run_timeout = 4 * s.lease;
}

// Items that end their nodes, and nothing else: all of them must be found, and all others finished.
void FindKillers(Scenario& s) {
  s.only_killers = s.quick = true;
  s.pods = s.isolate = s.speculation = false;
  s.killers += 50;
  s.max_losses = 10;
  s.thresholds = {};
  s.new_jobs = 0;
  s.bad_node = BadNode::kNone;
  s.weights.fill(0);
  s.lost = s.duplicated = s.late = s.misrouted = s.poison = s.bad = s.flaky = s.init_fails = 0;
  s.hangs = 0;
  s.run_timeout = s.run_mean * 10;
}

// Files appear while they are listed, slowly, by coordinators that are two at once for long.
void ListTwice(Scenario& s) {
  s.pods = false;
  s.look = seconds(60);
  s.weights.fill(0);
  s.weights[static_cast<size_t>(Fault::kKillCoordinator)] = 2;
  s.weights[static_cast<size_t>(Fault::kSecondCoordinator)] = 10;
  s.weights[static_cast<size_t>(Fault::kInputGrows)] = 30;
  s.chunk_files = s.files_per_batch;
  s.listing = s.lease / 4;
  s.rerouted = 50;
}

}  // namespace

Scenario Draw(uint64_t seed, bool liveness) {
  FaultRng rng(seed * 2 + (liveness ? 1 : 0));
  const auto between = [&](uint64_t low, uint64_t high) {
    return static_cast<uint32_t>(low + rng.Below(high - low + 1));
  };
  const auto ms = [&](uint64_t low, uint64_t high) { return milliseconds(between(low, high)); };
  const auto one_in = [&](uint64_t n) { return rng.Below(n) == 0; };
  Scenario s;
  s.seed = seed;
  s.liveness = liveness;
  s.nodes = between(1, 4);
  s.processes = between(1, 2);
  s.files_per_batch = between(1, 3);
  s.files = between(5, 40) * s.files_per_batch;
  s.chunk_files = s.files_per_batch * between(1, 12);
  s.run_max_try = between(1, 3);
  s.max_losses = one_in(3) ? between(1, 3) : 10;
  s.thresholds.allowed_failed_count = one_in(3) ? between(0, 4) : -1;
  s.thresholds.allowed_failed_percent = one_in(4) ? between(0, 50) : 100;
  s.thresholds.error_threshold = one_in(5) ? between(0, 10) : -1;
  s.append_row = !one_in(10);
  s.new_jobs = between(0, 2);

  s.lease = ms(2'000, 10'000);
  s.broken_grace = ms(200, 2'000);
  s.tick = ms(200, 1'000);
  s.run_mean = ms(5, one_in(4) ? 3'000 : 500);
  s.run_timeout = s.run_mean * 4 + ms(500, 4'000);
  s.call_timeout = ms(2'000, 20'000);
  s.sync = ms(1, one_in(4) ? 500 : 20);
  s.listing = ms(1, one_in(3) ? 2'000 : 50);
  s.delay = ms(1, 50);
  s.between_faults = ms(100, 6'000);
  s.faults_end = ms(5'000, 60'000);
  s.bound = seconds(3'600);
  s.max_events = between(500, 6'000);

  const auto rate = [&](uint32_t most) { return one_in(2) ? 0 : between(1, most); };
  s.lost = rate(200);
  s.duplicated = rate(200);
  s.late = rate(30);
  s.misrouted = one_in(2) ? between(1, 900) : 0;
  s.rerouted = one_in(2) ? between(1, 100) : 1000;
  s.in_parts = rate(300);
  s.poison = rate(80);
  s.bad = rate(100);
  s.flaky = rate(200);
  s.init_fails = rate(50);
  for (uint32_t& weight : s.weights) weight = one_in(2) ? 0 : between(1, 10);
  // A folder that files are copied into while it is listed.
  if (one_in(4)) s.weights[static_cast<size_t>(Fault::kInputGrows)] = 30;
  s.isolate = one_in(3);
  s.speculation = one_in(3);
  s.slow_least = ms(50, 2'000);
  s.killers = one_in(4) ? between(1, 40) : 0;
  s.pods = one_in(2);
  if (one_in(4)) KeepApart(s);
  if (one_in(16)) CutOff(s);
  // Some file systems show new files late: NFS by a minute, if it is left as it comes.
  s.look = s.pods || one_in(2) ? s.lease / 10 : seconds(60);
  if (one_in(16)) ListTwice(s);
  if (liveness && s.nodes > 1 && one_in(4)) s.bad_node = static_cast<BadNode>(between(1, 5));
  DrawClocks(s, rng);
  if (one_in(4)) s.hangs = between(1, 50);
  s.quick = one_in(2);
  if (liveness && one_in(8)) FindKillers(s);
  s.rival = one_in(8);
  s.shutdown = one_in(3);
  s.shutdown_bad = one_in(2) ? between(0, 200) : 0;
  s.shutdown_timeout = ms(1'000, 20'000);
  if (one_in(4)) s.ownerless = ms(30'000, 120'000);
  // The claim of a rival lies in that folder. It is few jobs' result, and is put back soon.
  uint32_t& folder_gone = s.weights[static_cast<size_t>(Fault::kFolderGone)];
  folder_gone = s.append_row || s.rival ? 0 : folder_gone * 5;
  return s;
}

Scenario Crowd(uint64_t seed, uint32_t nodes) {
  Scenario s;
  s.seed = seed;
  s.liveness = true;
  s.nodes = nodes;
  s.processes = 2;
  s.pods = true;
  s.files = nodes * s.processes * 3;
  s.chunk_files = 4096;
  s.thresholds.allowed_failed_count = -1;
  s.lease = seconds(10);
  s.look = seconds(1);
  s.broken_grace = seconds(2);
  s.tick = seconds(1);
  s.run_mean = seconds(1);
  s.run_timeout = seconds(60);
  s.call_timeout = seconds(20);
  s.sync = milliseconds(5);
  s.listing = milliseconds(5);
  s.delay = milliseconds(5);
  s.between_faults = seconds(2);
  s.faults_end = seconds(4);
  s.bound = seconds(3'600);
  s.weights[static_cast<size_t>(Fault::kKillCoordinator)] = 1;
  s.timed = true;
  return s;
}

bool OneAtATime(const Scenario& s) {
  const auto off = [&s](Fault fault) { return s.weights[static_cast<size_t>(fault)] == 0; };
  return !s.speculation && s.pods && s.new_jobs == 0 && off(Fault::kFreezeAgent) &&
         off(Fault::kSecondAgent) && off(Fault::kScale);
}

void DrawClocks(Scenario& s, FaultRng& rng) {
  s.slowest_clock = s.fastest_clock = OwnClock::kTrue;
  if (rng.Below(3) != 0) return;
  double apart = 4;  // the fastest to the slowest
  if (OneAtATime(s)) {
    // The time from a lease's deadline on its node to when another one may begin, on two clocks.
    const double lease = ToSeconds(s.lease);
    apart = 1.1 * lease / (lease + ToSeconds(kLateKill));
  }
  s.slowest_clock = static_cast<int64_t>(OwnClock::kTrue / std::sqrt(apart));
  s.fastest_clock = static_cast<int64_t>(OwnClock::kTrue * std::sqrt(apart));
}

}  // namespace parallelrun::simulation
