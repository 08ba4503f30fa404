#include "agent/core/agent_core.h"

#include <spdlog/fmt/fmt.h>

#include <utility>
#include <vector>

#include "base/mutation.h"

namespace parallelrun {
namespace {

constexpr Duration kHeartbeat = seconds(1);  // park while leases are held
constexpr Duration kIdlePark = seconds(20);  // park without
constexpr Duration kRenewOverdue = seconds(2);
constexpr Duration kQuiet = milliseconds(20);   // after a report, before a park
constexpr Duration kRepeat = milliseconds(50);  // what an answer left open is said again
constexpr Duration kFirstBackOff = milliseconds(50);
constexpr Duration kLastBackOff = seconds(1);
constexpr int kAwayShare = 8;  // of the time without an answer, a wait is this part at most
constexpr size_t kMaxEvents = 1000;
constexpr size_t kMaxMetrics = 800;  // of them: they never crowd out what matters

}  // namespace

AgentCore::AgentCore(const AgentOptions& options, Instant now)
    : options_(options), reachable_at_(now) {}

AgentCore::Batch* AgentCore::Find(Key key) {
  const auto it = leases_.find(key);
  return it == leases_.end() ? nullptr : &it->second;
}

bool AgentCore::Over(const Batch& batch, Instant now) const {
  if (registration_.speculation || batch.refused) return false;
  if (PARALLELRUN_MUTATED(kRunOutlivesLease)) return false;
  return now - batch.confirmed >= registration_.lease * 9 / 10;
}

// What the rest of the program may still hold of it are keys, in queues that skip unknown ones.
void AgentCore::Forget(Key key) {
  const auto it = leases_.find(key);
  Batch& batch = it->second;
  if (!batch.refused) {
    names_.erase(batch.name);
    if (batch.offered) --offers_;
    if (batch.state != State::kFinished) --unfinished_;
  }
  kept_bytes_ -= batch.rows.size();
  leases_.erase(it);
}

void AgentCore::AddEvent(uint32_t process, ProcessEvent::Kind kind, std::string message,
                         std::string log) {
  if (events_.size() >= kMaxEvents) return;  // the coordinator is away, and processes keep dying
  events_.push_back({process, kind, std::move(message), std::move(log)});
}

bool AgentCore::OnTold(uint32_t number, ProcessEvent::Kind kind, std::string_view text) {
  const auto it = processes_.find(number);
  const bool metric = kind == ProcessEvent::Kind::kMetric;
  if (it == processes_.end() || text.size() > (metric ? kMaxMetricBytes : kMaxHeaderBytes)) {
    return false;
  }
  if (metric && events_.size() >= kMaxMetrics) {
    ++dropped_metrics_;
    return true;
  }
  AddEvent(number, kind, std::string(text), std::to_string(++it->second.told));
  return true;
}

CallKind AgentCore::NextCall(Instant now, ExchangeRequest& request) {
  call_wake_ = kNever;
  if (done_ || end_ == AgentEnd::kFinished || end_ == AgentEnd::kLost) return CallKind::kNone;
  if (now - reachable_at_ >= options_.away_limit && backoff_ > Duration(0)) {
    End(AgentEnd::kLost, Duration(0),
        fmt::format("no coordinator answered for {}", HumanDuration(now - reachable_at_)), now);
    call_wake_ = now;  // for the Step that ends it
    return CallKind::kNone;
  }
  if (now < retry_at_) {
    call_wake_ = retry_at_;
    return CallKind::kNone;
  }
  Flight& report = flights_[0];
  Flight& park = flights_[1];
  if (report.busy) {
    // Its answer may wait for a slow disk; leases are renewed beside it.
    const bool beside = !park.busy && !leases_.empty() && !must_register_ && offers_ == 0;
    if (!beside) return CallKind::kNone;
    if (now - renewed_at_ < kRenewOverdue) {
      call_wake_ = renewed_at_ + kRenewOverdue;
      return CallKind::kNone;
    }
  } else if (must_register_) {
    report.busy = true;
    return CallKind::kRegister;
  }
  if (AwaitsDeaths()) return CallKind::kNone;

  const bool report_due = !report.busy && ReportDue(now);
  if (!report_due && !report.busy && (park.busy || now < park_at_)) {
    call_wake_ = report_due_;
    if (!park.busy) call_wake_ = std::min(call_wake_, park_at_);
    if (!leases_.empty()) call_wake_ = std::min(call_wake_, renewed_at_ + kRenewOverdue);
    return CallKind::kNone;
  }
  Flight& flight = report_due ? report : park;
  flight.busy = true;
  flight.incarnation = registration_.incarnation;
  flight.number = ++requests_;
  flight.sent = now;
  request.number = flight.number;
  request.open = 0;
  const Flight& other = report_due ? park : report;
  if (other.busy && other.incarnation == registration_.incarnation) request.open = other.number;
  request.incarnation = registration_.incarnation;
  request.settings_digest = registration_.settings_digest;
  request.park_ms = 0;
  request.held.clear();
  request.offered.clear();
  request.parts.clear();
  request.finished.clear();
  request.events.clear();
  AddHeld(flight, request);
  request.want = flight.want = Want(now);
  if (report_due) {
    AddOffersAndEvents(request);
    // What a process told before a result arrives before it.
    if (flight.events == events_.size()) AddFinished(request);
    return CallKind::kReport;
  }
  // What is granted late in that time must still be the node's for a while.
  const Duration idle =
      registration_.speculation ? kIdlePark : std::min(kIdlePark, registration_.lease / 2);
  const Duration longest = leases_.empty() ? idle : kHeartbeat;
  request.park_ms = static_cast<uint32_t>(longest / milliseconds(1));
  return CallKind::kPark;
}

// By the first exchange of an incarnation a coordinator knows what this node runs.
bool AgentCore::AwaitsDeaths() {
  awaits_deaths_ =
      awaits_deaths_ && std::any_of(processes_.begin(), processes_.end(), [](const auto& process) {
        const Process& p = process.second;
        return p.state == ProcessState::kKilled && !p.given.empty();
      });
  return awaits_deaths_;
}

bool AgentCore::ReportDue(Instant now) const {
  return offers_ > 0 || !events_.empty() || report_due_ <= now ||
         (!leases_.empty() && now - renewed_at_ >= kRenewOverdue);
}

uint32_t AgentCore::Want(Instant now) const {
  if (end_ != AgentEnd::kNone || kept_bytes_ > kMaxKeptBytes || !HasRoom(now)) return 0;
  uint32_t ready = 0;
  for (const auto& [number, process] : processes_) {
    if (process.state == ProcessState::kReady) ++ready;
  }
  const size_t have = unfinished_ + flights_[0].want + flights_[1].want;
  uint32_t target = ready == 0 ? 0 : stalled_ ? 2 * ready - LateProcesses() : pace_.Target(ready);
  if (registration_.async) target = std::max(target, ready * (kAsyncDepth + 1));
  return have >= target ? 0 : target - static_cast<uint32_t>(have);
}

// A process that could work has nothing to do, and there is nothing to give it.
bool AgentCore::Starving() const {
  if (unfinished_ > given_) return false;
  for (const auto& [number, process] : processes_) {
    if (process.state == ProcessState::kReady && process.given.empty()) return true;
  }
  return false;
}

// What the exchange reported and the answer did not settle is reported again at `due`.
void AgentCore::EndFlight(Flight& flight, Instant due) {
  if (flight.incarnation == registration_.incarnation) {
    for (const Key key : flight.finished) {
      if (Find(key) == nullptr) continue;
      unreported_.push_back(key);
      Due(due);
    }
  }
  flight.busy = false;
  flight.want = 0;
  flight.events = 0;
  flight.held.clear();
  flight.finished.clear();
  flight.parts.clear();
}

void AgentCore::OnReply(CallKind call, const ExchangeReply& reply, Instant now) {
  Flight& f = flight(call);
  if (reply.epoch != f.incarnation.epoch) {
    return OnCallFailed(
        call, reply.epoch > f.incarnation.epoch ? CallFailure::kStale : CallFailure::kUnreachable,
        now);
  }
  const bool current = f.incarnation == registration_.incarnation && !must_register_;
  reachable_at_ = now;
  backoff_ = Duration(0);
  if (current && f.unheard && f.number > lost_) lost_ = 0;
  for (const Key key : f.held) {
    Batch* batch = current ? Find(key) : nullptr;
    if (batch != nullptr) batch->confirmed = std::max(batch->confirmed, f.sent);
  }
  for (const auto& [key, received] : f.parts) {
    Batch* batch = current ? Find(key) : nullptr;
    if (batch != nullptr) batch->rows_received = std::max(batch->rows_received, received);
  }
  events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(f.events));
  // What is durable is durable, whichever incarnation asked.
  for (const LeaseName& name : reply.settled) {
    const auto it = names_.find(name);
    if (it == names_.end()) continue;
    const Key key = it->second;
    if (leases_.at(key).state == State::kFinished) {
      Forget(key);
    } else {
      Refuse(name, now);  // somebody else did it
    }
  }
  if (current) {
    for (const LeaseName& name : reply.refused) Refuse(name, now);
    for (const Adopted& adopted : reply.adopted) Adopt(adopted, f.sent, now);
  }
  EndFlight(f, now + kRepeat);
  for (const Leased& leased : reply.leased) AddLease(leased, !current, f.sent, now);
  if (current && reply.directive == Directive::kFinish) {
    End(AgentEnd::kFinished, Duration(0), "", now);
  } else if (current && reply.directive == Directive::kDrain) {
    Drain(options_.drain_grace, now);
  }
  if (current && offers_ > 0) retry_at_ = now + kRepeat;
  const bool hungry = call == CallKind::kReport ? Starving() : !reply.leased.empty();
  park_at_ = hungry ? now : now + kQuiet;
}

void AgentCore::OnCallFailed(CallKind call, CallFailure failure, Instant now) {
  Flight& f = flight(call);
  if (failure == CallFailure::kRefused) {
    End(AgentEnd::kLost, Duration(0), "the coordinator refused this node", now);
  } else if (failure == CallFailure::kStale) {
    reachable_at_ = now;
    if (call == CallKind::kRegister || f.incarnation == registration_.incarnation) {
      if (!must_register_) backoff_ = Duration(0);  // it was away, maybe, and is there again
      must_register_ = true;
    }
  } else if (failure == CallFailure::kBusy) {
    reachable_at_ = now;
  }
  renewed_at_ = Instant{};  // whatever it listed may not have been renewed
  if (call != CallKind::kRegister && f.incarnation == registration_.incarnation) lost_ = requests_;
  if (call == CallKind::kRegister) {
    f.busy = false;
  } else {
    EndFlight(f, now);
  }
  BackOff(now);
}

// Who is away for a moment is asked again in a moment: the work of all nodes may wait for this one.
void AgentCore::BackOff(Instant now) {
  const Duration away = now - reachable_at_;
  const Duration most =
      away > Duration(0) ? std::min(away / kAwayShare, kLastBackOff) : kLastBackOff;
  backoff_ = std::max(std::min(backoff_ * 2, most), kFirstBackOff);
  retry_at_ = now + backoff_;
}

void AgentCore::OnRegistered(const Registration& registration, Instant now) {
  flights_[0].busy = false;
  reachable_at_ = now;
  if (registered_ && registration.settings_digest != registration_.settings_digest) {
    // Another configuration is in force: nothing that was begun under the old one counts.
    DropAll(now);
    for (auto& [number, process] : processes_) Kill(number, process);
  }
  registration_ = registration;
  registered_ = true;
  must_register_ = false;
  process_end_ = registration.first_process + kProcessRange;
  // A coordinator that died before its successor could know of it had granted the same names.
  const bool granted_again =
      registration.first_process <= next_process_ && next_process_ <= process_end_;
  if (!granted_again) next_process_ = registration.first_process;
  renewed_at_ = Instant{};
  requests_ = 0;
  lost_ = 0;
  unreported_.clear();
  report_due_ = kNever;
  offers_ = 0;
  TellRoom();
  std::vector<LeaseName> dropped;
  for (auto& [key, batch] : leases_) {
    if (batch.refused) continue;
    // What was handed back may be here again, under a newer lease. Where one is over, an epoch that
    // this node never heard of may have leased it to a node that is not heard yet.
    batch.offered = batch.state == State::kFinished ? batch.kind != Finished::Kind::kReturned
                                                    : !Over(batch, now);
    batch.rows_received = 0;  // parts died with the incarnation that sent them
    if (batch.offered) {
      ++offers_;
    } else {
      dropped.push_back(batch.name);
    }
  }
  for (const LeaseName& name : dropped) {
    const Batch& batch = leases_.at(names_.at(name));
    if (batch.state == State::kGiven) {
      Kill(batch.process, processes_.at(batch.process));
      awaits_deaths_ = true;
    }
    Refuse(name, now);
  }
}

void AgentCore::DropAll(Instant now) {
  std::vector<LeaseName> names;
  names.reserve(names_.size());
  for (const auto& [name, key] : names_) names.push_back(name);
  for (const LeaseName& name : names) Refuse(name, now);
}

void AgentCore::Refuse(const LeaseName& name, Instant now) {
  const auto it = names_.find(name);
  if (it == names_.end()) return;
  const Key key = it->second;
  Batch& batch = leases_.at(key);
  if (batch.state != State::kGiven) return Forget(key);
  names_.erase(it);
  if (batch.offered) --offers_;
  --unfinished_;
  batch.offered = false;
  batch.refused = true;
  batch.refused_at = now;
}

void AgentCore::Adopt(const Adopted& adopted, Instant sent, Instant now) {
  const auto it = names_.find({adopted.id, adopted.old_fence});
  if (it == names_.end()) return;
  const Key key = it->second;
  Batch& batch = leases_.at(key);
  names_.erase(it);
  batch.name.fence = adopted.fence;
  names_.emplace(batch.name, key);
  batch.confirmed = std::max(batch.confirmed, sent);
  // Parts died with the fence under which they were sent, those under way too.
  batch.rows_received = 0;
  for (Flight& flight : flights_) {
    std::erase_if(flight.parts, [key](const auto& part) { return part.first == key; });
  }
  if (!std::exchange(batch.offered, false)) return;  // a held one that had expired: it goes on
  --offers_;
  if (batch.state == State::kFinished) {
    unreported_.push_back(key);
    Due(now);
  }
}

void AgentCore::AddLease(const Leased& leased, bool offered, Instant sent, Instant now) {
  const LeaseName name{leased.id, leased.fence};
  if (end_ == AgentEnd::kFinished || end_ == AgentEnd::kLost || names_.contains(name)) return;
  const Key key = next_key_++;
  Batch& batch = leases_[key];
  batch.name = name;
  batch.digest = leased.digest;
  batch.work = leased.work;
  batch.offered = offered;
  batch.confirmed = sent;
  if (offered) ++offers_;
  names_.emplace(name, key);
  ++unfinished_;
  if (end_ != AgentEnd::kNone) return Finish(key, batch, Finished::Kind::kReturned, now);
  queue_.push_back(key);
}

}  // namespace parallelrun
