#include "agent/core/agent_core.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "agent/processes/frames.h"

namespace parallelrun::agent {

namespace {

constexpr uint32_t kAsyncDepth = 8;
constexpr Duration kLook = milliseconds(100);  // between looks at the status pages
constexpr Duration kStalled = seconds(2);
constexpr Duration kReportWait = milliseconds(3);  // for company, when answers come fast
constexpr double kFastMicros = 1000;

}  // namespace

AgentCore::AgentCore(const AgentOptions& options, Instant now)
    : options_(options), calls_(now), processes_(session_.terms()), lives_(options.node) {}

// --- The coordinator's side.

ToSay AgentCore::WhatToSay() {
  // By the first exchange of an incarnation a coordinator knows what this node runs, and leases the
  // rest to others. So nothing is said before the processes are gone whose leases were over: one
  // that is being killed may still be in run() of what another node would begin with.
  awaits_deaths_ = awaits_deaths_ && processes_.KilledAtWork();
  return {session_.wanted(), held_.any(), held_.offers(), told_.any(), awaits_deaths_};
}

CallKind AgentCore::NextCall(Instant now, job::ExchangeRequest& request) {
  calls_.WakeAt(kNever);
  if (ending_.done() || ending_.Mute()) return CallKind::kNone;
  if (const Duration away = calls_.Away(now); away >= options_.away_limit) {
    End(AgentEnd::kLost, Duration(0),
        fmt::format("no coordinator answered for {}", HumanDuration(away)), now);
    calls_.WakeAt(now);  // for the Step that ends it
    return CallKind::kNone;
  }
  const CallKind call = calls_.Next(now, WhatToSay());
  if (call == CallKind::kNone || call == CallKind::kRegister) return call;
  Flight& flight = calls_.Begin(call, session_.terms(), held_.any(), now, request);
  if (flight.lists) held_.List(processes_.Begun(), flight, request);
  request.want = Want(now);
  flight.want = request.want;
  if (call == CallKind::kReport) {
    held_.Offer(request);
    // What a process told before a result arrives before it.
    if (told_.Report(request)) calls_.Reported(held_.Report(flight, request));
  }
  return call;
}

// What is under way may still be granted, so it counts as had: else two exchanges would ask for the
// same work twice. A node whose processes are all at long ones wants two for each that is not late,
// whatever the pace of earlier ones says: it would hold back what idle nodes could run.
uint32_t AgentCore::Want(Instant now) const {
  if (ending_.begun() || held_.Full() || !shortage_.Room(now)) return 0;
  const uint32_t ready = processes_.ready();
  const size_t have = held_.unfinished() + calls_.wanted();
  uint32_t target = 0;
  if (ready > 0) target = stalled_ ? 2 * ready - processes_.late() : pace_.Target(ready);
  if (session_.terms().async) target = std::max(target, ready * (kAsyncDepth + 1));
  return have >= target ? 0 : target - static_cast<uint32_t>(have);
}

// A process that could work has nothing to do, and there is nothing to give it.
bool AgentCore::Starving() const {
  return held_.unfinished() <= processes_.given() && processes_.AnyIdle();
}

// Calls, then Held, then Ending. What is refused goes before what is leased: a mini-batch may be
// refused under its old fence and granted again, under a new one, by the same answer. What the
// exchange reported and the answer did not settle is said again last, when settled ones are gone.
void AgentCore::OnReply(CallKind call, const job::ExchangeReply& reply, Instant now) {
  const uint32_t asked = calls_.Of(call).incarnation.epoch;
  if (reply.epoch != asked) {
    // A newer coordinator answers at the same address: this node must register. An older one, which
    // does not know yet that it is replaced, said nothing that counts.
    return OnCallFailed(call, reply.epoch > asked ? CallFailure::kStale : CallFailure::kUnreachable,
                        now);
  }
  const bool in_force = session_.InForce(calls_.Of(call).incarnation);
  const Flight flight = calls_.Answered(call, in_force, now);
  if (in_force) {
    held_.Confirm(flight.held, flight.sent);
    held_.HeardParts(flight.parts);
  }
  if (call == CallKind::kReport) told_.Heard();
  // What is durable is durable, whichever incarnation asked.
  for (const job::LeaseName& name : reply.settled) Settle(name, now);
  if (in_force) {
    for (const job::LeaseName& name : reply.refused) Refuse(name, now);
    for (const job::Adopted& adopted : reply.adopted) Adopt(adopted, flight.sent, now);
  }
  if (in_force && !reply.header.empty()) processes_.TellHeader(reply.header);
  SayAgain(flight, now + Calls::kRepeat);
  for (const job::Leased& leased : reply.leased) AddLease(leased, !in_force, flight.sent, now);
  if (in_force && reply.directive == job::Directive::kFinish) {
    End(AgentEnd::kFinished, Duration(0), "", now);
  } else if (in_force && reply.directive == job::Directive::kDrain) {
    Drain(options_.drain_grace, now);
  } else if (in_force && reply.directive == job::Directive::kClose) {
    Close(now);
  } else if (in_force && reply.directive == job::Directive::kWhere) {
    asked_where_ = true;  // when the pages are those of now
    asked_node_ = true;
  }
  const bool hungry = call == CallKind::kReport ? Starving() : !reply.leased.empty();
  calls_.AfterReply(in_force && held_.offers(), hungry, now);
}

void AgentCore::OnCallFailed(CallKind call, CallFailure failure, Instant now) {
  if (failure == CallFailure::kRefused) {
    End(AgentEnd::kLost, Duration(0), "the coordinator refused this node", now);
  }
  const bool latest = call == CallKind::kRegister || session_.Latest(calls_.Of(call).incarnation);
  const bool stale = failure == CallFailure::kStale && latest;
  const bool anew = stale && !session_.wanted();
  if (stale) session_.Want();
  const Flight flight = calls_.Failed(call, failure, latest, anew, now);
  if (call == CallKind::kReport) told_.NotHeard();
  SayAgain(flight, now);
}

// What the exchange reported and its answer did not settle.
void AgentCore::SayAgain(const Flight& flight, Instant due) {
  if (!session_.Latest(flight.incarnation)) return;
  if (held_.ReportAgain(flight.finished)) calls_.ReportBy(due);
}

// A new incarnation: what this node holds is offered to it, and becomes its own by being adopted.
void AgentCore::OnRegistered(const Registration& registration, Instant now) {
  // One that was replaced and does not know it yet: what it adopts of this node, the newer ones
  // know under other fences, so a failed try would count twice.
  if (session_.ever() && registration.incarnation.epoch < session_.terms().incarnation.epoch) {
    return OnCallFailed(CallKind::kRegister, CallFailure::kUnreachable, now);
  }
  calls_.Registered(now);
  if (session_.Begin(registration)) {
    // Another configuration is in force: nothing that was begun under the old one counts.
    RefuseAll(now);
    processes_.KillAll();
  }
  lives_.Grant(registration.first_process);
  ending_.Reopen();
  // What the last coordinator noted may not count; this one must know it before it takes a result.
  told_.Add(lives_.Owes());
  told_.Add(shortage_.All());
  told_.Add(waits_.All());
  for (const job::LeaseName& name : held_.OfferAll(session_.OverBefore(now))) {
    const Batch& batch = held_.At(*held_.Find(name));
    // Refused, its process would go on until it is looked at: it has no lease that could be over.
    if (batch.state == Batch::State::kGiven) {
      processes_.Kill(batch.process);
      awaits_deaths_ = true;
    }
    Refuse(name, now);
  }
}

void AgentCore::Adopt(const job::Adopted& adopted, Instant sent, Instant now) {
  const auto adoption = held_.Adopt(adopted, sent);
  if (!adoption) return;
  calls_.ForgetParts(adoption->key);  // the other exchange may have some under way
  if (adoption->report) calls_.ReportBy(now);
}

void AgentCore::AddLease(const job::Leased& leased, bool offered, Instant sent, Instant now) {
  if (ending_.Mute()) return;
  const auto key = held_.Add(leased, offered, sent);
  if (key && ending_.begins_nothing()) Finish(*key, {}, now);
}

void AgentCore::Settle(const job::LeaseName& name, Instant now) {
  const auto key = held_.Find(name);
  if (!key) return;
  if (held_.At(*key).state == Batch::State::kFinished) return held_.Forget(*key);
  Refuse(name, now);  // somebody else did it
}

void AgentCore::Refuse(const job::LeaseName& name, Instant now) {
  const auto key = held_.Find(name);
  if (key && held_.Refuse(*key)) processes_.Refused(held_.At(*key).process, *key, now);
}

void AgentCore::RefuseAll(Instant now) {
  for (const job::LeaseName& name : held_.Names()) Refuse(name, now);
}

// --- The processes' side.

void AgentCore::Step(Instant now) {
  if (now >= look_at_) Look(now);
  if (std::exchange(asked_where_, false)) processes_.AskWhere();
  const bool room = shortage_.Room(now);
  if (!ending_.begins_nothing() && room) {
    // All but one for each process that may soon take it, so that an idle node can.
    if (stalled_) Return(held_.Waiting(processes_.size() - processes_.late()), now);
    if (session_.ever() && waits_.side_inputs_there()) StartMissing(now);
    HandOut(now);
  } else if (!ending_.begun()) {
    Return(held_.Waiting(0), now);
  }
  if (shortage_.RoomAgain(now)) calls_.ReportBy(now);  // the parked request wants nothing
  if (ending_.begins_nothing()) EndProcesses(now);
  const bool look = processes_.given() > 0 || ending_.begins_nothing();
  step_wake_ = std::min(look ? look_at_ : kNever, shortage_.WakeAt(now));
  step_wake_ = std::min(step_wake_, std::max(processes_.NextDeadline(), look_at_));
}

void AgentCore::Look(Instant now) {
  look_at_ = now + kLook;
  const auto over = [this](Key key, Instant at) {
    return held_.Over(key, session_.OverBefore(at));
  };
  const Checked checked = processes_.Check(now, pace_.Long(), over);
  for (uint32_t i = 0; i < checked.never_began; ++i) lives_.NeverBegan();
  for (const Key key : checked.taken_back) GiveAgain(key, held_.At(key).bounces, now);
  // While it is unclear what this node holds, nothing is handed back.
  stalled_ = !session_.terms().async && !session_.wanted() && !held_.offers() &&
             processes_.AllBusyFor(kStalled, now);
}

void AgentCore::StartMissing(Instant now) {
  const uint32_t wanted = session_.terms().processes;
  if (auto why = lives_.WhyNoMore(wanted)) {
    if (processes_.size() > 0) return;
    told_.Add({0, job::ProcessEvent::Kind::kGaveUp, *why});
    return End(AgentEnd::kGaveUp, options_.drain_grace, *std::move(why), now);
  }
  while (processes_.size() < wanted) {
    const auto number = lives_.NextName();
    if (!number) return session_.Want();  // for another range of names
    // It may live where two epochs granted the same names: the later could not know the earlier.
    processes_.Start(*number);
  }
}

void AgentCore::HandOut(Instant now) {
  if (held_.Full()) return;
  const Registration& terms = session_.terms();
  const uint32_t depth = terms.async ? kAsyncDepth : pace_.Depth();
  const Instant over = session_.OverBefore(now);
  while (const auto key = held_.FirstWaiting()) {
    if (held_.Over(*key, over)) return;  // until it is renewed
    const Batch& batch = held_.At(*key);
    // What came late with an answer of an earlier epoch may be with another node by now.
    if (batch.offered && !terms.speculation) return;  // until it is adopted
    const auto process = processes_.Idlest(depth, batch.bounces);
    if (!process) return;
    held_.Give(*key, *process);
    processes_.Give(*process, *key, batch.bounces, batch.work, now);
  }
}

bool AgentCore::OnReady(uint32_t process, bool shutdown, Instant) {
  const ProcessState state = processes_.StateOf(process);
  if (state == ProcessState::kKilled) return true;
  if (state != ProcessState::kStarting) return false;
  processes_.Ready(process);
  if (shutdown) processes_.Owes(process);
  told_.Add(lives_.Ready(process, shutdown));
  return true;
}

bool AgentCore::OnOwes(uint32_t process) {
  const ProcessState state = processes_.StateOf(process);
  if (state == ProcessState::kKilled) return true;
  if (state != ProcessState::kReady && state != ProcessState::kStopping) return false;
  processes_.Owes(process);
  told_.Add(lives_.Owes(process));
  return true;
}

bool AgentCore::OnStopped(uint32_t process, std::string failure, Instant now) {
  const ProcessState state = processes_.StateOf(process);
  if (state == ProcessState::kKilled) return true;
  if (state != ProcessState::kStopping) return false;
  processes_.Stopped(process, now);
  lives_.Stopped(process, std::move(failure));
  return true;
}

void AgentCore::OnInitFailed(uint32_t process, std::string message, bool fatal, Instant now,
                             bool logged) {
  if (processes_.StateOf(process) != ProcessState::kStarting) return;
  if (!fatal && shortage_.measured()) return OnInitRanOut(process, std::move(message), now);
  processes_.StartFailed(process, now);
  Lives::StartEnd start = lives_.StartFailed(process, message, fatal, logged, ending_.begun());
  told_.Add(std::move(start.events));
  if (start.gives_up) End(AgentEnd::kGaveUp, options_.drain_grace, std::move(message), now);
}

void AgentCore::OnInitRanOut(uint32_t process, std::string message, Instant now) {
  if (processes_.StateOf(process) != ProcessState::kStarting) return;
  processes_.StartFailed(process, now);
  RanOut(std::move(message), now);
}

bool AgentCore::OnTold(uint32_t process, job::ProcessEvent::Kind kind, std::string_view text) {
  const size_t most =
      kind == job::ProcessEvent::Kind::kMetric ? job::kMaxMetricBytes : job::kMaxHeaderBytes;
  if (processes_.StateOf(process) == ProcessState::kGone || text.size() > most) return false;
  if (!told_.Takes(kind)) return true;
  if (kind == job::ProcessEvent::Kind::kHeader) processes_.AwaitHeader(process);
  told_.Add({process, kind, std::string(text), std::to_string(processes_.CountTold(process))});
  return true;
}

bool AgentCore::OnRows(uint32_t process, uint64_t sequence, std::string_view rows) {
  const auto key = processes_.Answerable(process, sequence);
  if (!key) return false;
  held_.AddRows(*key, rows);
  return true;
}

std::optional<job::BatchId> AgentCore::BatchOf(uint32_t process, uint64_t sequence) const {
  const std::optional<Key> key = processes_.Answerable(process, sequence);
  return key ? std::optional(held_.At(*key).name.id) : std::nullopt;
}

Answered AgentCore::TakeAnswer(uint32_t process, uint64_t sequence, Instant now) {
  const Answered answered = processes_.Answer(process, sequence, now);
  pace_.Add(answered.busy, now);
  lives_.Answered();
  return answered;
}

bool AgentCore::OnResult(uint32_t process, const ResultAnswer& answer, Instant now) {
  const auto key = processes_.Answerable(process, answer.sequence);
  const Registration& terms = session_.terms();
  if (!key || !WholeRows(held_.At(*key).rows, answer, terms.rows, terms.staged)) return false;
  const Answered answered = TakeAnswer(process, answer.sequence, now);
  if (held_.At(*key).refused) return held_.Forget(*key), true;
  held_.AddRows(*key, answer.rows);
  Finish(*key, Succeeded(answer, answered.elapsed), now);
  if (shortage_.Worked()) told_.Add({0, job::ProcessEvent::Kind::kRanOut});
  return true;
}

bool AgentCore::OnFailed(uint32_t process, FailedAnswer answer, Instant now) {
  const auto key = processes_.Answerable(process, answer.sequence);
  if (!key) return false;
  const Answered answered = TakeAnswer(process, answer.sequence, now);
  if (held_.At(*key).refused) return held_.Forget(*key), true;
  held_.DropRows(*key);
  if (answer.kind == kNoSpaceKind || shortage_.measured()) {
    RanOut(std::move(answer.message), now);
    Finish(*key, {}, now);
    return true;
  }
  if (answer.log.empty()) answer.log = ErrorLog(options_.node, process);
  Finish(*key, Failed(std::move(answer), answered.elapsed), now);
  return true;
}

bool AgentCore::OnPassedOver(uint32_t process, uint64_t sequence, Instant now) {
  std::optional<Key> key;
  if (!processes_.PassedOver(process, sequence, key)) return false;
  if (key) GiveAgain(*key, held_.At(*key).bounces, now);
  return true;
}

// Processes, then ToBlame, then Held, then what is told.
void AgentCore::OnExited(uint32_t process, const std::string& words, Instant now,
                         const job::OutputRanges& output, const std::string& where) {
  Ended ended = processes_.Exited(process, shortage_.measured(), now);
  ended.killed_for.message += where;
  told_.Add(lives_.Exited(process, ended, words, shortage_.measured(),
                          session_.terms().shutdown_timeout));
  for (const Orphan& orphan : ended.orphans) {
    const bool refused = held_.At(orphan.key).refused;
    if (refused || orphan.fault == Fault::kNone || orphan.fault == Fault::kBounced) {
      GiveAgain(orphan.key, orphan.bounces, now);
      continue;
    }
    held_.DropRows(orphan.key);
    Finish(orphan.key, OfDeath(options_.node, process, ended, orphan, words, output), now);
  }
}

void AgentCore::OnWhere(uint32_t process, std::string where) {
  if (processes_.StateOf(process) == ProcessState::kGone) return;
  told_.Add(lives_.Where(process, std::move(where)));
}

void AgentCore::OnWaits(std::string why) {
  if (why.empty()) return;
  told_.Add({job::ProcessEvent::kWholeNode, job::ProcessEvent::Kind::kWhere, std::move(why)});
}

void AgentCore::GiveAgain(Key key, uint32_t bounces, Instant now) {
  if (held_.At(key).refused) return held_.Forget(key);
  held_.GiveAgain(key, bounces);
  if (ending_.begins_nothing() || shortage_.measured()) Return({key}, now);
}

void AgentCore::Finish(Key key, Outcome outcome, Instant now) {
  const Batch& batch = held_.At(key);
  if (outcome.kind != job::Finished::Kind::kReturned) {
    told_.Note({outcome.result(), batch.process, batch.name.id, ItemsOfWork(batch.work),
                outcome.error_kind});
  }
  if (!held_.Finish(key, std::move(outcome))) return;
  // Results of a millisecond go together, a few in one request. Only while others are under way:
  // the last one of a job has nothing to wait for.
  const bool fast = pace_.known() && pace_.MeanMicros() < kFastMicros && processes_.given() > 0;
  calls_.ReportBy(fast ? now + kReportWait : now);
}

void AgentCore::Return(const std::vector<Key>& keys, Instant now) {
  for (const Key key : keys) Finish(key, {}, now);
}

// --- Objects of stores.

void AgentCore::TakeObjects(std::vector<ObjectsWanted>& wanted, std::vector<Key>& let_go) {
  wanted.clear();
  for (const Key key : held_.TakeWanting()) {
    if (held_.Fetches(key)) wanted.push_back({key, held_.At(key).work});
  }
  let_go = held_.TakeLetGo();
}

void AgentCore::OnFetched(Key key, std::string work) { held_.Fetched(key, std::move(work)); }

void AgentCore::OnNotFetched(Key key, const Error& why, Instant now) {
  if (!held_.Fetches(key)) return;
  if (why.code == Code::kNoSpace) RanOut(why.message, now);
  if (why.code == Code::kNoSpace || why.code == Code::kUnavailable) return Finish(key, {}, now);
  Finish(key, NotFetched(why), now);
}

void AgentCore::OnStoreWait(const std::string& what) { Tell(waits_.Store(what)); }

void AgentCore::OnFetching(const std::string& what, uint64_t bytes) {
  Tell(waits_.SideInputs(what, bytes));
}

// The first coordinator hears it when the node registers.
void AgentCore::Tell(std::optional<Event> news) {
  if (news && session_.ever()) told_.Add(*std::move(news));
}

void AgentCore::OnSideInputsLost(std::string why, Instant now) {
  if (ending_.begun()) return;
  told_.Add({0, job::ProcessEvent::Kind::kFetchFailed, why});
  End(AgentEnd::kGaveUp, options_.drain_grace, std::move(why), now);
}

// --- Want of space, and the end.

void AgentCore::OnRoom(const std::string& why) {
  if (shortage_.Measured(why)) told_.Add({0, job::ProcessEvent::Kind::kNoRoom, why});
}

void AgentCore::RanOut(std::string message, Instant now) {
  if (shortage_.RanOut(message, now)) {
    told_.Add({0, job::ProcessEvent::Kind::kRanOut, std::move(message)});
  }
}

void AgentCore::Drain(Duration grace, Instant now) {
  if (ending_.begun()) return ending_.Hurry(grace, now);
  End(AgentEnd::kDrained, grace, "", now);
}

void AgentCore::End(AgentEnd end, Duration grace, std::string message, Instant now) {
  switch (ending_.Begin(end, grace, std::move(message), now)) {
    case Ending::Then::kNothing: return;
    case Ending::Then::kReturn: return Return(held_.Waiting(0), now);
    case Ending::Then::kDrop:
      told_.Clear();  // there is nobody left to report to
      return RefuseAll(now);
  }
}

// All mini-batches are settled. Who was there when the last coordinator died may not be any more,
// so each is told which processes it may still wait for, behind all that was told of those that
// ended.
void AgentCore::Close(Instant now) {
  if (!ending_.Close(now)) return;
  told_.Add(lives_.Owing());
  Return(held_.Waiting(0), now);
}

void AgentCore::EndProcesses(Instant now) {
  const Ending::Stay stay =
      ending_.ProcessesStay(session_.terms().shutdown_timeout, options_.shutdown_limit, now);
  processes_.EndAll(stay.over, stay.stop_by, stay.hung, now);
  if (processes_.size() > 0 || !ending_.begun()) return;
  ending_.NoProcessLeft(!held_.any() && !told_.any(), session_.ever(), now);
}

}  // namespace parallelrun::agent
