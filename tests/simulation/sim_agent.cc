#include "tests/simulation/sim_agent.h"

#include <spdlog/fmt/fmt.h>

#include "tests/simulation/sim_coordinator.h"

namespace parallelrun::simulation {
namespace {

agent::AgentOptions Options(uint32_t node) {
  agent::AgentOptions options;
  options.node = node;
  options.away_limit = seconds(120);
  options.drain_grace = seconds(5);
  options.shutdown_limit = seconds(2);
  return options;
}

}  // namespace

SimAgent::SimAgent(World& world, size_t id, const AgentStart& start)
    : world_(world),
      clock_(world.DrawClock()),
      id_(id),
      node_(start.node),
      access_(start.access),
      pod_(start.pod),
      name_(fmt::format("agent{}", id)),
      core_(Options(start.node), Now()) {}

SimAgent::~SimAgent() {
  for (const auto& [number, worker] : workers_) LeaveRun(number, worker);
}

void SimAgent::LeaveRun(uint32_t process, const Worker& worker) {
  if (worker.busy) world_.oracle().RunEnds(worker.tasks.front().work.id, WorkerName(process));
}

void SimAgent::Wake() {
  if (wake_at_ > Now()) return;
  wake_at_ = Instant::max();
}

void SimAgent::Pump() {
  if (exited_) return;
  const Instant now = Now();
  for (auto& [number, worker] : workers_) {
    worker.status.taken_back = worker.taken_back;
    core_.OnStatus(number, worker.status);
  }
  core_.Step(now);
  core_.TakeActions(actions_);
  for (const agent::WorkerAction& action : std::exchange(actions_, {})) Perform(action);
  if (core_.end() != agent::AgentEnd::kNone) {
    exited_ = true;
    if (world_.tracing())
      world_.Trace(fmt::format("{} of node {} ends: {} {}", name_, node_,
                               static_cast<int>(core_.end()), core_.end_message()));
    if (incarnation_.epoch != 0 && core_.end() != agent::AgentEnd::kLost) {
      world_.Call(
          id_, node_, seconds(5),
          [node = node_, incarnation = incarnation_](SimCoordinator& c, const auto& reply) {
            c.Leave(node, incarnation);
            reply({});
          },
          [](SimAgent&, const World::Answer&) {});
    }
    return world_.AgentExited(id_, core_.end());
  }
  for (;;) {
    const agent::CallKind call = core_.NextCall(now, request_);
    if (call == agent::CallKind::kNone) break;
    Call(call);
  }
  const Instant wake = core_.WakeAt();
  if (wake == Instant::max() || wake >= wake_at_) return;
  wake_at_ = wake;
  world_.OnAgent(id_, clock_.Takes(std::max(Duration(1), wake - now)),
                 [](SimAgent& a) { a.Wake(); });
}

// --- calls

void SimAgent::Call(agent::CallKind call) {
  const auto answered = [call](SimAgent& a, const World::Answer& answer) {
    a.OnAnswer(call, answer);
  };
  const Duration timeout = clock_.Takes(world_.scenario().call_timeout);
  if (call == agent::CallKind::kRegister) {
    return world_.Call(
        id_, node_, timeout,
        [name = name_, node = node_, pod = pod_, n = world_.scenario().processes, run = run_](
            SimCoordinator& c, const auto& reply) { c.Register(node, name, pod, n, run, reply); },
        answered);
  }
  SplitRows(request_);
  world_.Call(
      id_, node_, timeout + clock_.Takes(milliseconds(request_.park_ms)),
      [node = node_, bytes = job::Encode(request_)](SimCoordinator& c, const auto& reply) {
        c.Exchange(node, bytes, reply);
      },
      answered);
}

// Has the first half of the rows of some results go ahead as parts, as an agent does with rows that
// are too many for one request: of odd mini-batches in a request of its own.
void SimAgent::SplitRows(job::ExchangeRequest& request) {
  job::ExchangeRequest before;
  before.incarnation = request.incarnation;
  before.settings_digest = request.settings_digest;
  for (job::Finished& done : request.finished) {
    const size_t half = done.rows.size() / 2;
    if (done.kind != job::Finished::Kind::kSucceeded || half == 0) continue;
    if (done.id * 37 % 1000 >= world_.scenario().in_parts) continue;
    (done.id % 2 == 0 ? request : before)
        .parts.push_back({done.id, done.fence, 0, done.rows.substr(0, half)});
    done.rows_offset = half;
    done.rows = done.rows.substr(half);
  }
  if (before.parts.empty()) return;
  world_.Call(
      id_, node_, world_.scenario().call_timeout,
      [node = node_, bytes = job::Encode(before)](SimCoordinator& c, const auto& reply) {
        c.Exchange(node, bytes, reply);
      },
      [](SimAgent&, const World::Answer&) {});
}

void SimAgent::OnAnswer(agent::CallKind call, const World::Answer& answer) {
  const Instant now = Now();
  switch (answer.kind) {
    case World::Answer::Kind::kReply: {
      const Result<job::ExchangeReply> reply = job::DecodeExchangeReply(answer.bytes);
      if (!reply.ok()) return world_.oracle().Violated("messages", reply.error().message);
      return core_.OnReply(call, *reply, now);
    }
    case World::Answer::Kind::kRegistered: {
      agent::Registration registration;
      run_ = answer.run;
      registration.incarnation = incarnation_ = answer.incarnation;
      registration.settings_digest = kSettingsDigest;
      registration.first_process = answer.first_process;
      registration.processes = world_.scenario().processes;
      registration.lease = world_.scenario().lease;
      registration.speculation = world_.scenario().speculation;
      registration.run_timeout = world_.scenario().run_timeout;
      registration.overhead_timeout = seconds(10);
      registration.shutdown_timeout = world_.scenario().shutdown_timeout;
      if (world_.tracing()) {
        world_.Trace(fmt::format("{} of node {} is incarnation {}.{}", name_, node_,
                                 incarnation_.epoch, incarnation_.number));
      }
      return core_.OnRegistered(registration, now);
    }
    case World::Answer::Kind::kStale:
      return core_.OnCallFailed(call, agent::CallFailure::kStale, now);
    case World::Answer::Kind::kBusy:
      return core_.OnCallFailed(call, agent::CallFailure::kBusy, now);
    case World::Answer::Kind::kRefused:
      return core_.OnCallFailed(call, agent::CallFailure::kRefused, now);
    case World::Answer::Kind::kNone:
      return core_.OnCallFailed(call, agent::CallFailure::kUnreachable, now);
  }
}

// --- workers

void SimAgent::OnWorker(uint32_t process, uint64_t life, Duration delay,
                        std::function<void(SimAgent&, Worker&)> event) {
  world_.OnAgent(id_, delay, [process, life, event = std::move(event)](SimAgent& a) {
    const auto it = a.workers_.find(process);
    if (it != a.workers_.end() && it->second.life == life) event(a, it->second);
  });
}

void SimAgent::Perform(const agent::WorkerAction& action) {
  const uint32_t number = action.process;
  if (action.kind == agent::WorkerAction::Kind::kStart) {
    Worker& worker = workers_[number];
    worker.life = ++lives_;
    const Scenario& s = world_.scenario();
    const bool fails = s.BadnessOf(node_) == BadNode::kFailsInit ||
                       (world_.faulty() && world_.Chance(s.init_fails));
    OnWorker(number, worker.life, world_.Around(milliseconds(100)),
             [number, fails](SimAgent& a, Worker& w) {
               if (fails) return a.Exit(number, "was killed by signal 9");
               w.ready = true;
               w.status.phase = agent::Phase::kWaiting;
               const bool shutdown = a.world_.scenario().shutdown;
               if (!a.core_.OnReady(number, shutdown, a.Now())) a.Exit(number, "was ended");
             });
    return;
  }
  const auto it = workers_.find(number);
  if (it == workers_.end()) return;
  Worker& worker = it->second;
  switch (action.kind) {
    case agent::WorkerAction::Kind::kGive:
      worker.tasks.push_back({action.sequence, DecodeWork(action.work)});
      world_.oracle().Given(worker.tasks.back().work.id);
      Begin(number, worker);
      break;
    case agent::WorkerAction::Kind::kTakeBack: worker.taken_back = action.sequence; break;
    case agent::WorkerAction::Kind::kStop:
      if (world_.scenario().shutdown) {
        OnWorker(number, worker.life, world_.Around(milliseconds(50)),
                 [number](SimAgent& a, Worker& w) { a.ShutDown(number, w); });
        break;
      }
      [[fallthrough]];
    case agent::WorkerAction::Kind::kKill:
      OnWorker(number, worker.life, world_.Around(milliseconds(5)),
               [number](SimAgent& a, Worker&) { a.Exit(number, "was killed by signal 9"); });
      break;
    case agent::WorkerAction::Kind::kWhere:
      OnWorker(number, worker.life, world_.Around(milliseconds(20)),
               [number](SimAgent& a, Worker&) { a.core_.OnWhere(number, "run score.py:1"); });
      break;
    case agent::WorkerAction::Kind::kHeader:  // its rows have none
    case agent::WorkerAction::Kind::kStart: break;
  }
}

void SimAgent::Begin(uint32_t number, Worker& worker) {
  if (worker.busy || worker.hung || worker.tasks.empty()) return;
  if (worker.tasks.front().sequence <= worker.taken_back) return PassOver(number, worker);
  worker.busy = true;
  const Task& task = worker.tasks.front();
  world_.oracle().RunBegins(task.work.id, WorkerName(number));
  worker.status = {task.sequence, agent::Phase::kRun, Now()};
  const Scenario& s = world_.scenario();
  const bool poison = world_.input().Poison(task.work.items);
  const bool fails = poison || (world_.faulty() && world_.Chance(s.flaky));
  const BadNode bad = s.BadnessOf(node_);
  if (bad == BadNode::kNeverEnds) return;
  if (bad == BadNode::kDies || world_.input().Killer(task.work.items)) {
    // Otherwise long enough for a heartbeat to tell that it began.
    const bool quick = s.quick && bad != BadNode::kDies;
    const Duration until =
        quick ? world_.Around(milliseconds(2)) : seconds(1) + world_.Around(seconds(1));
    OnWorker(number, worker.life, until, [id = task.work.id](SimAgent& a, Worker&) {
      a.world_.oracle().EndsItsNode(id);
      a.Die();
    });
    return;
  }
  const Duration run = world_.Around(s.run_mean);
  // 0, 1: raises; 2: the process ends; 3: never returns
  const uint64_t how = poison ? task.work.items.front() % 4 : world_.rng().Below(4);
  if (fails && how == 3) return;
  OnWorker(number, worker.life, run, [number, fails, how](SimAgent& a, Worker& w) {
    if (fails && how == 2) return a.Exit(number, "was killed by signal 11");
    a.EndTask(number, w, !fails);
  });
}

// It raises, hangs until it is killed, or ends well.
void SimAgent::ShutDown(uint32_t number, Worker& worker) {
  const bool bad = world_.faulty() && world_.Chance(world_.scenario().shutdown_bad);
  if (bad && world_.rng().Below(2) == 0) return;
  if (!bad) world_.oracle().ShutsDown(WorkerName(number));
  if (!core_.OnStopped(number, bad ? "it raised" : "", Now())) return Exit(number, "was ended");
  OnWorker(number, worker.life, world_.Around(milliseconds(5)),
           [number](SimAgent& a, Worker&) { a.Exit(number, "exited with status 0"); });
}

void SimAgent::PassOver(uint32_t number, Worker& worker) {
  const uint64_t sequence = worker.tasks.front().sequence;
  worker.tasks.pop_front();
  worker.status = {sequence, agent::Phase::kWaiting, Now()};
  if (!core_.OnPassedOver(number, sequence, Now())) return Exit(number, "was ended");
  Begin(number, worker);
}

void SimAgent::Die() {
  if (exited_) return;
  exited_ = true;
  world_.AgentDies(id_);
}

void SimAgent::EndTask(uint32_t number, Worker& worker, bool well) {
  LeaveRun(number, worker);
  const Task task = std::move(worker.tasks.front());
  worker.tasks.pop_front();
  worker.busy = false;
  worker.status = {task.sequence, agent::Phase::kWaiting, Now()};
  bool taken = true;
  if (well) {
    world_.oracle().Succeeded(task.work.id, WorkerName(number));
    agent::ResultAnswer answer;
    answer.sequence = task.sequence;
    const std::string rows = world_.input().Rows(task.work.items, answer.row_count);
    answer.items_succeeded = answer.row_count;
    size_t sent = 0;
    if (rows.size() > 7 && task.sequence % 5 == 0) {
      sent = 7;
      taken = core_.OnRows(number, task.sequence, std::string_view(rows).substr(0, sent));
    }
    answer.rows = std::string_view(rows).substr(sent);
    taken = taken && core_.OnResult(number, answer, Now());
  } else {
    taken = core_.OnFailed(
        number, {{.run_ns = 1000}, task.sequence, job::Cause::kRun, "Exception", "it failed", ""},
        Now());
  }
  if (!taken) return Exit(number, "was ended");
  const uint32_t hangs = world_.scenario().hangs;
  worker.hung = world_.faulty() && hangs > 0 && world_.Chance(hangs);
  Begin(number, worker);
}

void SimAgent::Exit(uint32_t number, const char* words) {
  const auto it = workers_.find(number);
  core_.OnStatus(number, it->second.status);
  LeaveRun(number, it->second);
  workers_.erase(it);
  core_.OnExited(number, words, Now());
}

}  // namespace parallelrun::simulation
