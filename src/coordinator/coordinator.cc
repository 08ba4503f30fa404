#include "coordinator/coordinator.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "api/defaults.h"
#include "base/json.h"
#include "coordinator/core/intake.h"
#include "coordinator/core/process_events.h"
#include "coordinator/item_names.h"
#include "job/verdict.h"

namespace parallelrun::coordinator {
namespace {

// What a pod that is on its way out has for its last mini-batches: its grace.
constexpr Duration kLastWork = seconds(60);

constexpr uint32_t kMaxParkMs = 20'000;
// Process names are unique within a node for ever: each incarnation gets a range of its own.
constexpr uint64_t kProcessNames = 1'000;
constexpr uint64_t kIncarnationsOfEpoch = 200;

}  // namespace

Coordinator::Coordinator(const CoordinatorLimits& limits, ledger::Ledger& ledger,
                         plan::PlanStore& plan, job::JobState& state, Instant now)
    : limits_(limits),
      plan_(plan),
      working_(now),
      journal_(ledger, state),
      availability_(
          state, ledger.epoch(),
          {limits.lease, static_cast<uint32_t>(limits.spec.run_max_try), limits.speculation},
          ledger.fresh(), working_.At(now)),
      nodes_(limits.nodes),
      newest_(limits.look, now),
      ending_(limits.rules, limits.spec.shutdown_timeout, journal_),
      program_errors_(limits.processes, working_.At(now)),
      standstill_({limits.spec.progress_update_timeout, limits.spec.first_task_creation_timeout,
                   api::InitTimeout(limits.spec)},
                  working_.At(now)),
      attempts_(limits_, journal_, availability_, plan),
      told_(limits.speculation),
      answers_(limits.processes, {journal_, availability_, nodes_, newest_, ending_, attempts_,
                                  plan, standstill_, init_watch_}) {
  Decide(now);
}

// --- an exchange

uint64_t Coordinator::Exchange(uint32_t index, const job::ExchangeRequest& request, Instant now,
                               Answer answer) {
  working_.Pass(now);
  const uint64_t exchange = answers_.waiters().Name();
  if (request.incarnation.epoch > journal_.epoch()) newest_.Named(request.incarnation.epoch, now);
  if (!nodes_.InForce(index, request.incarnation) ||
      request.settings_digest != limits_.settings_digest) {
    told_.RefuseAll(index, request);
    answer(
        Error{Code::kStale, fmt::format("node {} is not registered as incarnation {}.{} of epoch "
                                        "{}: register again",
                                        index, request.incarnation.epoch,
                                        request.incarnation.number, journal_.epoch())});
    return exchange;
  }
  Nodes::Node& node = *nodes_.Find(index);
  node.seen = working_.At(now);
  node.expired.clear();  // its agent lives
  // A node has one parked request; the newer one stands for it now.
  answers_.waiters().Release(index, now);

  Intake intake(index, request, working_.At(now), WallUs(now), journal_, availability_, attempts_,
                plan_);
  Intake::Taken& taken = intake.taken();
  intake.TakeUnheard();
  const ProcessEvents events{journal_,    nodes_,      ending_, program_errors_,
                             standstill_, init_watch_, told_};
  events.Take(index, request, taken);
  // Only a process that is ready takes or holds anything. Who has said so to the coordinator before
  // this one does not say it again.
  const bool works = request.want > 0 || !request.held.empty() || !request.offered.empty();
  if (node.starts && works) nodes_.Ready(node);
  if (nodes_.any_ready()) standstill_.Ready(working_.At(now));
  intake.TakeHeld();
  intake.TakeOffered();
  intake.TakeParts();
  intake.TakeFinished();
  if (!request.offered.empty()) nodes_.Offered(node, taken.compared);
  nodes_.Hear(node);
  if (request.unheard) {
    standstill_.NotHeard(index);
    init_watch_.NotHeard(index);
  }
  if (taken.moved) standstill_.Moved(working_.At(now));
  for (const job::Finished* const failed : taken.failed) {
    if (state().counts().succeeded > 0) break;  // then no error is every attempt's
    program_errors_.AttemptFailed(index, failed->process, failed->id, Bounded(failed->error_kind),
                                  Bounded(failed->message));
  }
  told_.Refuse(index, node.pod, request.incarnation, std::move(taken.refused));

  Waiter waiting;
  waiting.exchange = exchange;
  waiting.node = index;
  waiting.incarnation = request.incarnation;
  waiting.number = request.number;
  waiting.want = request.want;
  waiting.arrived = now;
  waiting.park_until = now + milliseconds(std::min(request.park_ms, kMaxParkMs));
  waiting.position = taken.position;
  waiting.reply = std::move(taken.reply);
  waiting.answer = std::move(answer);
  waiting.news = waiting.position > 0 || !waiting.reply.settled.empty() ||
                 !waiting.reply.refused.empty() || !waiting.reply.adopted.empty() ||
                 !request.parts.empty() ||
                 (request.unheard && ending_.closing().tells());  // which may be what was not heard
  answers_.waiters().Add(std::move(waiting));
  if (availability_.awaits_nodes() && nodes_.AllHeard()) availability_.OpenGate();
  Decide(now);
  AnswerWoken(now);
  return exchange;
}

// --- nodes come and go

NodeRegistration Coordinator::Register(uint32_t index, const std::string& agent, uint32_t processes,
                                       Instant now, uint64_t pod) {
  working_.Pass(now);
  switch (nodes_.BeforeIt(index, agent, pod)) {
    case Nodes::Before::kNone: break;
    case Nodes::Before::kMayLive: attempts_.SetAside(index); break;
    case Nodes::Before::kDied: Died(index, nullptr, now); break;
  }
  const Nodes::Node& node =
      nodes_.Register(index, agent, pod, processes, journal_.epoch(), working_.At(now));
  answers_.waiters().Release(index, now);
  AnswerWoken(now);
  const uint64_t range =
      (journal_.epoch() - limits_.first_epoch) * kIncarnationsOfEpoch + node.registrations - 1;
  return {node.incarnation, static_cast<uint32_t>(range * kProcessNames)};
}

bool Coordinator::HasToWait(uint32_t index, const std::string& agent, uint64_t pod, Instant now) {
  working_.Pass(now);
  if (nodes_.BeforeIt(index, agent, pod) != Nodes::Before::kMayLive) return false;
  if (availability_.HeldCount(index) == 0) return false;
  const WorkInstant worked = working_.At(now);
  return worked - nodes_.FirstAsked(index, pod, worked) < kLastWork;
}

void Coordinator::Leave(uint32_t index, const job::Incarnation& incarnation, Instant now) {
  working_.Pass(now);
  Nodes::Node* const node = nodes_.Find(index);
  if (node == nullptr || node->incarnation != incarnation) return;
  nodes_.Depart(*node);
  node->expired.clear();
  attempts_.HandBackAll(index);
  ending_.LoseShutdowns(state().shutdowns().OpenOf(index), "its node has left");
  answers_.waiters().Release(index, now);
  if (phase() == Phase::kClosing) Decide(now);
  AnswerWoken(now);
}

void Coordinator::ConnectionGone(uint64_t exchange, Instant now) {
  working_.Pass(now);
  const std::optional<uint32_t> node = answers_.waiters().Gone(exchange);
  if (!node) return;  // it has its answer
  nodes_.CallEnded(*node);
  // Without speculation its agent may go on for as long as it was told.
  if (limits_.speculation) availability_.Shorten(*node, working_.At(now), limits_.broken_grace);
}

void Coordinator::OnPodEnd(const PodEnd& end, Instant now) {
  working_.Pass(now);
  // Also of one that never came so far as to register.
  standstill_.Ended(end.node, end.incarnation, end.reason);
  Nodes::Node* const found = nodes_.Find(end.node);
  if (found == nullptr || end.incarnation <= found->ended_pod) return;
  Nodes::Node& node = *found;
  node.ended_pod = end.incarnation;
  // Where the number is unknown, an agent with an open call is not the one that died.
  const bool other = node.pod != 0 ? node.pod != end.incarnation : answers_.waiters().Has(end.node);
  if (other) return;
  const bool memory = end.reason == kOutOfMemory;
  const bool disk = end.reason == kOwnDiskFull;
  if (memory || disk || end.reason == "Killed" || end.reason == "Error") {
    Died(end.node, &end, now);
  } else {
    node.expired.clear();
    attempts_.HandBackAll(end.node);
  }
  if ((memory || disk) && !node.ever_ready) {
    program_errors_.KilledInInit(end.node, node.processes, disk);
  }
  nodes_.Depart(node);
  ending_.LoseShutdowns(state().shutdowns().OpenOf(end.node), "its pod has ended");
  answers_.waiters().Release(end.node, now);
  Decide(now);
  AnswerWoken(now);
}

// What expired was its agent's until it was heard of again.
void Coordinator::Died(uint32_t index, const PodEnd* end, Instant now) {
  std::vector<job::Held> held = availability_.HeldBy(index);
  for (const job::Held& one : std::exchange(nodes_.Find(index)->expired, {})) {
    if (!state().settled(one.id)) held.push_back(one);
  }
  if (!held.empty()) standstill_.Moved(working_.At(now));
  attempts_.NodeDied(index, held, end, WallUs(now));
  Decide(now);
}

// --- plan

Status Coordinator::AddChunk(const std::string& encoded, Instant now) {
  working_.Pass(now);
  if (decided()) return {};
  const Result<uint64_t> position = journal_.AddChunk(encoded);
  if (!position.ok()) return position.error();
  availability_.Plan(*position, state().counts().planned);
  standstill_.Moved(working_.At(now));
  return {};
}

void Coordinator::EndPlan(Instant now) {
  working_.Pass(now);
  if (!decided()) {
    journal_.Add(job::PlanEndRecord{state().counts().planned, state().counts().items_planned});
  }
  Decide(now);
  AnswerWoken(now);
}

void Coordinator::FailPlan(const Error& error, Instant now) {
  ending_.Conclude(job::FailedFor("InputUnusable", error.message));
  AnswerWoken(now);
}

void Coordinator::OnPlanRead(Instant now) {
  working_.Pass(now);
  answers_.PlanRead();
  Decide(now);
  AnswerWoken(now);
}

// --- ledger and time

void Coordinator::OnDurable(Instant now) {
  working_.Pass(now);
  availability_.Durable(journal_.durable());
  answers_.waiters().Durable(journal_.durable());
  Follow(ending_.Durable(now));
  AnswerWoken(now);
}

void Coordinator::Tick(Instant now) {
  working_.Pass(now);
  const WorkInstant worked = working_.At(now);
  for (const job::Held& held : availability_.Expire(worked)) {
    nodes_.Find(held.lease.node)->expired.push_back(held);
  }
  // Nobody offered them: their node died together with the earlier coordinator.
  for (const job::BatchId id : availability_.TimePassed(worked)) {
    const auto started = state().started().find(id);
    if (started != state().started().end()) attempts_.Lost(0, {id, started->second});
  }
  nodes_.ForgetSilent(worked, limits_.lease,
                      [&](uint32_t node) { return answers_.waiters().Has(node); });
  told_.Observe(
      {state().counts().succeeded + state().counts().failed, running(), nodes_.processes()},
      worked);
  // Where nodes end again and again, somebody could work: else a job whose pods are taken away as
  // soon as they are made would never end.
  const bool tried = nodes_.AnyAtWork() || standstill_.InVain();
  const bool usable = tried && paused().empty() && newest_.unseen().empty() && !newest_.Hangs(now);
  const Nodes::InInit in_init = nodes_.in_init();
  const bool stands = standstill_.Tick(worked, usable, nodes_.any_ready() ? 0 : in_init.nodes);
  const bool starts_long = init_watch_.Tick(in_init, worked);
  if (stands || starts_long) answers_.waiters().WakeAll();
  if (phase() == Phase::kRunning) {
    if (const auto late = standstill_.Overdue(state(), worked, [&] { return WhyStill(); })) {
      ending_.Conclude(*late);
    } else {
      Decide(now);
    }
  }
  if (phase() == Phase::kClosing) {
    if (ending_.closing().Overdue(worked)) {
      ending_.LoseShutdowns(state().shutdowns().Open(), "nothing was heard of its node any more");
    }
    ending_.LoseShutdowns(nodes_.OfNobody(state().shutdowns().Open()),
                          "its node is not part of the job now");
    Decide(now);
  }
  answers_.WakeForSlow(worked);
  OnDurable(now);
}

void Coordinator::Unpause() {
  if (!paused().empty()) answers_.waiters().WakeHungry();
  journal_.Unpause();
}

bool Coordinator::WantsLook(Instant now) const { return newest_.Wants(now); }

void Coordinator::OnLooked(Instant begun, const Status& seen, Instant now) {
  newest_.OnLooked(begun, seen, now);
  Follow(ending_.Looked(begun, seen.ok()));
  AnswerWoken(now);
}

// --- people and the cluster

void Coordinator::Control(const ControlRequest& control, Instant now) {
  working_.Pass(now);
  const uint64_t generation = control.generation.value_or(control_generation_);
  if (generation >= control_generation_) {
    control_generation_ = generation;
    SetThresholds(control.ChangedFrom(rules().thresholds), now);
    const std::optional<int64_t> nodes = lenient::MaybeInteger(control.spec, "nodeCount");
    if (nodes) SetNodes(static_cast<uint32_t>(*nodes), now);
  }
  for (const PodEnd& end : control.pod_ends) OnPodEnd(end, now);
  if (control.drain) Drain(now);
  if (control.cancel) Cancel(now);
}

void Coordinator::Drain(Instant now) {
  ending_.Drain();
  answers_.waiters().WakeAll();
  AnswerWoken(now);
}

void Coordinator::Cancel(Instant now) {
  ending_.Conclude(job::FailedFor("Canceled", "canceled by request"));
  AnswerWoken(now);
}

void Coordinator::SetNodes(uint32_t nodes, Instant now) {
  nodes_.Expect(nodes);
  answers_.waiters().WakeAll();
  Decide(now);
  AnswerWoken(now);
}

void Coordinator::SetThresholds(const job::Thresholds& thresholds, Instant now) {
  if (!ending_.SetThresholds(thresholds, WallUs(now))) return;
  Decide(now);
  AnswerWoken(now);
}

// --- end

void Coordinator::Decide(Instant now) {
  if (decided()) return;
  bool unread = false;  // then the verdict waits for its words
  const auto items = [this, &unread](job::BatchId id) -> std::string {
    if (plan_.AtHand(state(), id)) return ItemsOfMiniBatch(state(), plan_, id);
    unread = true;
    return "";
  };
  const WorkInstant worked = working_.At(now);
  if (const auto verdict = parallelrun::job::Decide(state(), rules(), items)) {
    if (!unread) Follow(ending_.Finish(*verdict, worked));
  } else if (const auto early = program_errors_.Judge(state(), nodes_, worked, items)) {
    if (!unread) ending_.Conclude(*early);
  }
}

void Coordinator::Follow(const Ending::Then& then) {
  if (then.look) newest_.Ask();
  if (then.wake) answers_.waiters().WakeAll();
}

void Coordinator::OnPublished(const job::Published& published, Instant now) {
  Unpause();  // there was room for it
  ending_.Publish({published.path, published.bytes, published.rows, published.sha256});
  AnswerWoken(now);
}

// --- what it says

RunEnd::Facts Coordinator::FactsOfEnd(Instant now) const {
  RunEnd::Facts facts;
  facts.phase = phase();
  facts.decided = decided();
  facts.succeeded = decided() && state().verdict()->outcome == job::Outcome::kSucceeded;
  facts.nodes = nodes_.registered();
  facts.durable = journal_.appended() == journal_.durable();
  facts.wants_look = WantsLook(now);
  facts.superseded = newest_.superseded();
  facts.lost = newest_.lost();
  facts.paused = paused();
  return facts;
}

uint64_t Coordinator::running() const {
  return availability_.live() - availability_.live_pieces() + state().counts().split;
}

uint64_t Coordinator::pending() const {
  return availability_.pending() - (state().counts().pieces_open - availability_.live_pieces());
}

std::optional<std::pair<job::Held, Duration>> Coordinator::Slowest(Instant now) const {
  std::optional<job::Held> slowest = availability_.Slowest();
  if (!slowest) return std::nullopt;
  return std::pair(*slowest, working_.At(now) - slowest->lease.started_at);
}

std::string Coordinator::InitText(Instant now) const {
  if (phase() != Phase::kRunning) return "";
  return init_watch_.Text(nodes_.in_init(), working_.At(now));
}

std::string Coordinator::WaitsFor() const {
  if (!paused().empty()) return paused();
  return newest_.unseen().empty() ? nodes_.WaitsFor() : newest_.unseen();
}

// "": for the script, as far as is known.
std::string Coordinator::WhyStill() const {
  if (std::string silent = nodes_.Silent(); !silent.empty()) return silent;
  if (std::string waits = WaitsFor(); !waits.empty()) return waits;
  if (std::string fetching = nodes_.Fetching(); !fetching.empty()) return fetching;
  if (std::string ends = standstill_.InVainText(); !ends.empty()) return ends;
  return nodes_.registered() == 0 ? "no node is there" : "";
}

std::string Coordinator::Check(Instant now) const {
  std::string wrong = availability_.Check();
  return wrong.empty() ? answers_.Check(now) : wrong;
}

}  // namespace parallelrun::coordinator
