#include "tests/simulation/world.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "tests/simulation/sim_agent.h"
#include "tests/simulation/sim_coordinator.h"

namespace parallelrun::simulation {
namespace {

constexpr char kAwayFolder[] = "/job/away";

// What this thread has used, whoever else is at work on this machine.
Duration ProcessorTime() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return seconds(used.tv_sec) + Duration(used.tv_nsec / 1000);
}

}  // namespace

World::World(const Scenario& scenario, bool trace)
    : scenario_(scenario),
      trace_(trace),
      rng_(scenario.seed ^ 0x5eed),
      input_(scenario_),
      oracle_(scenario_, input_),
      disk_(scenario.seed + 1),
      cuts_(scenario.nodes),
      routes_(scenario.nodes, kNobody) {}

World::~World() = default;

void World::Trace(const std::string& text) const {
  if (trace_) fmt::print("{:>12.6f}  {}\n", ToSeconds(now_.time_since_epoch()) - 1000, text);
}

// --- events

void World::After(Duration delay, std::function<void()> event) {
  heap_.push_back({now_ + std::max(delay, Duration(0)), ++sequence_, std::move(event)});
  std::push_heap(heap_.begin(), heap_.end(), [](const Event& a, const Event& b) {
    return std::tie(a.at, a.sequence) > std::tie(b.at, b.sequence);
  });
}

void World::OnCoordinator(size_t id, Duration delay, std::function<void(SimCoordinator&)> event) {
  After(delay, [this, id, event = std::move(event)]() mutable {
    SimCoordinator* c = coordinators_[id].get();
    if (c == nullptr || c->files().dead()) return;
    if (c->frozen_until > now_) return OnCoordinator(id, c->frozen_until - now_, std::move(event));
    const Duration begin = scenario_.timed ? ProcessorTime() : Duration(0);
    event(*c);
    if (!c->files().dead()) c->AfterEvent();
    if (!scenario_.timed) return;
    const Duration took = ProcessorTime() - begin;
    ++outcome_.coordinator_events;
    outcome_.coordinating += took;
    outcome_.longest = std::max(outcome_.longest, took);
  });
}

void World::OnAgent(size_t id, Duration delay, std::function<void(SimAgent&)> event) {
  After(delay, [this, id, event = std::move(event)]() mutable {
    SimAgent* a = agents_[id].get();
    if (a == nullptr) return;
    if (a->frozen_until > now_) return OnAgent(id, a->frozen_until - now_, std::move(event));
    event(*a);
    if (agents_[id]) a->Pump();
  });
}

RunOutcome World::Run(Supervisor& supervisor) {
  supervisor_ = &supervisor;
  if (trace_ && scenario_.bad_node != BadNode::kNone) {
    Trace(fmt::format("node {} {}", scenario_.nodes - 1, Name(scenario_.bad_node)));
  }
  if (scenario_.rival) {
    disk_.Put(kClaimPath, RivalClaim());
    After(Around(scenario_.faults_end), [this] { RivalEnds(); });
  }
  supervisor.Start();
  After(Around(scenario_.between_faults), [this] { Misbehave(); });
  if (scenario_.liveness) After(scenario_.faults_end, [this] { Heal(); });
  const uint64_t endless = std::max(uint64_t{2'000'000}, 10'000 * uint64_t{scenario_.nodes});
  const uint64_t most = scenario_.liveness ? endless : scenario_.max_events;
  uint64_t hash = 0xcbf29ce484222325;
  while (!over_ && oracle_.violation().empty() && outcome_.events < most && !heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.at, a.sequence) > std::tie(b.at, b.sequence);
    });
    const Event event = std::move(heap_.back());
    heap_.pop_back();
    now_ = event.at;
    ++outcome_.events;
    hash =
        (hash ^ static_cast<uint64_t>(now_.time_since_epoch().count()) ^ (event.sequence << 40)) *
        0x100000001b3;
    event.run();
    Sweep();
  }
  if (scenario_.liveness && !over_) {
    oracle_.Violated("12 every job ends", fmt::format("no verdict {} after the last fault",
                                                      HumanDuration(scenario_.bound)));
  }
  if (trace_) {
    for (const auto& c : coordinators_) {
      if (c) Trace("at the end: " + c->Describe());
    }
  }
  FinalChecks();
  outcome_.violation = oracle_.violation();
  outcome_.hash = hash ^ rng_.Next();
  outcome_.time = now_ - Instant(seconds(1000));
  outcome_.epochs = oracle_.newest_claimed();
  return outcome_;
}

void World::RivalEnds() {
  if (!disk_.Has(kClaimPath) || disk_.Contents(kClaimPath) != RivalClaim()) {
    oracle_.Violated("20 an output is one job's", "the claim of a job at work was taken over");
  }
  disk_.Drop(kClaimPath);
}

void World::PutInOrder() {
  // What is away may have been made anew since.
  if (disk_.HasFolder(kAwayFolder) && !disk_.HasFolder(kOutputFolder)) {
    Trace("a person moves the output folder back");
    static_cast<void>(disk_.Rename(kAwayFolder, kOutputFolder));
  }
  if (disk_.Has(kOutputPath) && disk_.Contents(kOutputPath) == kForeignFile) {
    Trace("a person moves the foreign file away");
    disk_.Drop(kOutputPath);
    oracle_.ForeignFileGone();
  }
}

void World::FinalChecks() {
  if (!oracle_.violation().empty()) return;
  // Also of a job that failed after it had succeeded, and what had failed was tried again.
  const bool published = over_ && scenario_.append_row && oracle_.published();
  if (!published) return;
  // What was told must outlive any power failure.
  disk_.Crash(CrashMode::kLoseAll);
  if (!disk_.Has(kOutputPath) || disk_.Contents(kOutputPath) != oracle_.published()) {
    oracle_.Violated("7 complete outputs", "the published output did not survive a crash");
  }
}

OwnClock World::DrawClock() {
  const Scenario& s = scenario_;
  if (s.slowest_clock == s.fastest_clock) return {now_, now_, OwnClock::kTrue};
  const Instant shows = Instant(seconds(1000 + rng_.Below(1'000'000)));
  // What differs most finds most.
  const uint64_t which = rng_.Below(4);
  if (which == 0) return {now_, shows, OwnClock::kTrue};
  return {now_, shows, which == 1 ? s.fastest_clock : s.slowest_clock};
}

// --- network

Duration World::Delay() {
  if (faulty_ && Chance(scenario_.late)) return Around(scenario_.lease);
  return Around(scenario_.delay);
}

void World::Call(size_t agent, uint32_t node, Duration timeout, const Handler& handler,
                 const Answered& answered) {
  const uint32_t access = agents_[agent]->access();
  // One answer for one call: the first that comes, or none at the time-out.
  auto open = std::make_shared<bool>(true);
  const auto deliver = [this, agent, open, answered](Duration delay, Answer answer) {
    OnAgent(agent, delay, [open, answered, answer = std::move(answer)](SimAgent& a) {
      if (std::exchange(*open, false)) answered(a, answer);
    });
  };
  deliver(timeout, Answer());
  // A node stays with the coordinator that it reached, also with one that was superseded.
  size_t& to = routes_[node];
  if (to == kNobody || !coordinators_[to] || coordinators_[to]->files().dead() ||
      Chance(scenario_.rerouted)) {
    to = PickCoordinator(!Chance(scenario_.misrouted));
  }
  const bool cut_off = scenario_.BadnessOf(node) == BadNode::kCutOff;
  const uint32_t copies = faulty_ && Chance(scenario_.duplicated) ? 2 : 1;
  if (copies == 2) Count(Fault::kDuplicated);
  for (uint32_t copy = 0; copy < copies; ++copy) {
    if (cut_off || cuts_[node].out || (faulty_ && Chance(scenario_.lost))) {
      Count(Fault::kLost);
      if (Chance(500)) deliver(Delay(), Answer());  // the connection is seen to break
      continue;
    }
    if (to == kNobody) {
      deliver(Delay(), Answer());
      continue;
    }
    const auto reply = [this, node, deliver](Answer answer) {
      if (cuts_[node].in || (faulty_ && Chance(scenario_.lost))) {
        Count(Fault::kLost);
        if (Chance(500)) deliver(Delay(), Answer());
        return;
      }
      deliver(Delay(), std::move(answer));
    };
    After(Delay(), [this, to = to, access, handler, reply, deliver] {
      SimCoordinator* c = coordinators_[to].get();
      if (c == nullptr || c->files().dead()) return deliver(Delay(), Answer());
      connections_[to].push_back([this, deliver] { deliver(Delay(), Answer()); });
      OnCoordinator(to, Duration(0), [handler, reply, access](SimCoordinator& running) {
        if (!running.running()) return;
        if (running.access() != access) return reply({World::Answer::Kind::kRefused, {}, {}, 0, 0});
        handler(running, reply);
      });
    });
  }
}

size_t World::PickCoordinator(bool newest) {
  std::vector<size_t> alive;
  for (size_t i = 0; i < coordinators_.size(); ++i) {
    if (coordinators_[i] && !coordinators_[i]->files().dead()) alive.push_back(i);
  }
  if (alive.empty()) return kNobody;
  return newest ? alive.back() : alive[rng_.Below(alive.size())];
}

size_t World::PickAgent() {
  std::vector<size_t> alive;
  for (size_t i = 0; i < agents_.size(); ++i) {
    if (agents_[i]) alive.push_back(i);
  }
  return alive.empty() ? kNobody : alive[rng_.Below(alive.size())];
}

// --- life and death

size_t World::StartCoordinator(const CoordinatorStart& start) {
  const size_t id = coordinators_.size();
  coordinators_.push_back(std::make_unique<SimCoordinator>(*this, id, start));
  connections_.emplace_back();
  if (trace_) Trace(fmt::format("coordinator {} starts", id));
  coordinators_[id]->Start();
  if (coordinators_[id] && !coordinators_[id]->files().dead()) coordinators_[id]->AfterEvent();
  return id;
}

size_t World::StartAgent(const AgentStart& start) {
  const size_t id = agents_.size();
  agents_.push_back(std::make_unique<SimAgent>(*this, id, start));
  OnAgent(id, Around(milliseconds(50)), [](SimAgent&) {});
  if (scenario_.BadnessOf(start.node) == BadNode::kCrashes) {
    OnAgent(id, Around(seconds(2)), [](SimAgent& agent) { agent.Die(); });
  }
  return id;
}

bool World::Serves(uint32_t node) const {
  return std::any_of(agents_.begin(), agents_.end(),
                     [node](const auto& agent) { return agent && agent->node() == node; });
}

void World::Exited(size_t id, coordinator::CoordinatorExit exit) {
  const SimCoordinator& coordinator = *coordinators_[id];
  if (trace_)
    Trace(fmt::format("coordinator {} (epoch {}) ends: {}", id, coordinator.epoch(),
                      static_cast<int>(exit)));
  coordinators_[id]->files().Die();
  supervisor_->OnCoordinatorEnd(id, coordinator, exit);
}

void World::AgentExited(size_t id, agent::AgentEnd end) {
  supervisor_->OnAgentEnd(id, end);
  LoseAgent(id);
}

void World::AgentDies(size_t id) {
  supervisor_->OnAgentKilled(id);
  LoseAgent(id);
}

// It is taken away when none of its code is running.
void World::LoseAgent(size_t id) {
  After(Duration(0), [this, id] { agents_[id].reset(); });
}

void World::KillAgent(size_t id) {
  supervisor_->OnAgentKilled(id);
  agents_[id].reset();
}

void World::JobOver(bool succeeded) {
  over_ = true;
  outcome_.job_over = true;
  outcome_.succeeded = succeeded;
}

// Coordinators that died are taken away only here, when none of their code is running.
void World::Sweep() {
  for (size_t i = 0; i < coordinators_.size(); ++i) {
    if (!coordinators_[i] || !coordinators_[i]->files().dead()) continue;
    const bool killed = !coordinators_[i]->ended();
    coordinators_[i].reset();
    if (killed) supervisor_->OnCoordinatorKilled(i);
    for (const auto& broken : std::exchange(connections_[i], {})) broken();
  }
}

void World::KillCoordinator(size_t id) { coordinators_[id]->files().Die(); }

void World::CrashMachine() {
  for (const auto& c : coordinators_) {
    if (c) c->files().Die();
  }
  const uint64_t how = rng_.Below(4);
  disk_.Crash(how == 0 ? CrashMode::kLoseAll : CrashMode::kLoseSome);
}

// --- faults

void World::Misbehave() {
  if (!faulty_) return;
  After(Around(scenario_.between_faults), [this] { Misbehave(); });
  uint32_t total = 0;
  for (const uint32_t weight : scenario_.weights) total += weight;
  if (total == 0) return;
  uint64_t at = rng_.Below(total);
  for (size_t i = 0; i < kDrawnFaults; ++i) {
    if (at < scenario_.weights[i]) return Do(static_cast<Fault>(i));
    at -= scenario_.weights[i];
  }
}

void World::Do(Fault fault) {
  const size_t c = PickCoordinator(Chance(700));
  const size_t a = PickAgent();
  const Duration outage = Around(scenario_.lease);
  if (trace_) Trace(fmt::format("fault: {}", Name(fault)));
  const bool of_supervisor = fault == Fault::kSecondCoordinator || fault == Fault::kSecondAgent ||
                             fault == Fault::kScale || fault == Fault::kNewJob;
  if (of_supervisor && !supervisor_->Do(fault)) return;
  Count(fault);
  switch (fault) {
    case Fault::kKillCoordinator:
      if (c != kNobody) KillCoordinator(c);
      break;
    case Fault::kCrashMachine: CrashMachine(); break;
    case Fault::kFreezeCoordinator:
      if (c != kNobody) coordinators_[c]->frozen_until = now_ + outage * 2;
      break;
    case Fault::kFreezeAgent:
      if (a != kNobody) agents_[a]->frozen_until = now_ + outage * 2;
      break;
    case Fault::kKillAgent:
      if (a == kNobody) break;
      if (c != kNobody && Chance(500)) {
        OnCoordinator(c, Delay(), [node = agents_[a]->node()](SimCoordinator& running) {
          if (running.running()) running.ConnectionGone(node);
        });
      }
      KillAgent(a);
      break;
    case Fault::kCutOff: {
      Cut& cut = cuts_[rng_.Below(scenario_.nodes)];
      const uint64_t way = rng_.Below(3);
      cut = {way != 0, way != 1};
      After(outage, [&cut] { cut = {}; });
      break;
    }
    case Fault::kDiskFull:
      disk_.SetCapacity(disk_.used() + rng_.Below(2000));
      After(outage, [this] { disk_.SetCapacity(std::nullopt); });
      break;
    case Fault::kDiskError:
      if (c == kNobody) break;
      coordinators_[c]->files().FailAt(
          1 + rng_.Below(8), rng_.Below(2) == 0 ? FaultMoment::kBefore : FaultMoment::kAfter);
      break;
    case Fault::kDieInside: {
      if (c == kNobody) break;
      const bool machine = Chance(500);
      coordinators_[c]->files().InterruptAt(1 + rng_.Below(20), [this, c, machine] {
        if (machine) return CrashMachine();
        KillCoordinator(c);
      });
      break;
    }
    case Fault::kComeBetween:
      if (c == kNobody) break;
      coordinators_[c]->files().InterruptAt(1 + rng_.Below(8),
                                            [this] { supervisor_->Do(Fault::kSecondCoordinator); });
      break;
    case Fault::kForeignFile:
      if (disk_.Has(kOutputPath)) break;
      disk_.Put(kOutputPath, kForeignFile);
      oracle_.ForeignFile();
      break;
    case Fault::kLedgerGone:
      if (c != kNobody) coordinators_[c]->LoseLedger();
      break;
    case Fault::kFolderGone:
      if (!disk_.HasFolder(kOutputFolder) || disk_.HasFolder(kAwayFolder)) break;
      static_cast<void>(disk_.Rename(kOutputFolder, kAwayFolder));
      oracle_.FolderGone();
      break;
    case Fault::kInputGrows: input_.Grow(rng_.Next()); break;
    case Fault::kDrainCoordinator:
      if (c == kNobody) break;
      OnCoordinator(c, Duration(0), [](SimCoordinator& running) {
        if (running.running()) running.Drain();
      });
      break;
    case Fault::kEndCoordinator:
      if (c == kNobody) break;
      OnCoordinator(c, Duration(0), [](SimCoordinator& running) {
        if (running.running()) running.HandOver();
      });
      break;
    case Fault::kDrainAgent:
      if (a != kNobody) OnAgent(a, Duration(0), [](SimAgent& agent) { agent.Drain(); });
      break;
    default: break;
  }
}

void World::Heal() {
  Trace("faults end");
  faulty_ = false;
  disk_.SetCapacity(std::nullopt);
  for (Cut& cut : cuts_) cut = {};
  std::fill(routes_.begin(), routes_.end(), kNobody);
  for (const auto& c : coordinators_) {
    if (!c) continue;
    c->frozen_until = now_;
    c->files().ClearFaults();
  }
  // Of several agents of one node the newest lives on.
  for (size_t i = 0; i < agents_.size(); ++i) {
    if (!agents_[i]) continue;
    agents_[i]->frozen_until = now_;
    for (size_t j = i + 1; j < agents_.size(); ++j) {
      if (agents_[j] && agents_[j]->node() == agents_[i]->node()) {
        KillAgent(i);
        break;
      }
    }
  }
  supervisor_->Heal();
  After(scenario_.bound, [this] {
    oracle_.Violated("12 every job ends", fmt::format("no verdict {} after the last fault",
                                                      HumanDuration(scenario_.bound)));
  });
}

}  // namespace parallelrun::simulation
