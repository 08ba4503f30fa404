#include "agent/agent_core.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

namespace parallelrun {
namespace {

constexpr Duration kHeartbeat = seconds(1);  // park while leases are held
constexpr Duration kIdlePark = seconds(20);  // park without
constexpr Duration kRenewAfter = milliseconds(900);
constexpr Duration kRenewOverdue = seconds(2);
constexpr Duration kQuiet = milliseconds(20);   // after a report, before a park
constexpr Duration kRepeat = milliseconds(50);  // what an answer left open is said again
constexpr Duration kFirstBackOff = milliseconds(50);
constexpr Duration kLastBackOff = seconds(1);
constexpr size_t kMaxEvents = 1000;
constexpr size_t kMaxMetrics = 800;  // of them: they never crowd out what matters
constexpr size_t kEntryBytes = 96;   // at least what a finished mini-batch takes in a request

}  // namespace

AgentCore::AgentCore(const AgentOptions& options, Instant now)
    : options_(options), reachable_at_(now) {}

AgentCore::Batch* AgentCore::Find(Key key) {
  const auto it = leases_.find(key);
  return it == leases_.end() ? nullptr : &it->second;
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
  if (report.busy) return CallKind::kNone;
  if (must_register_) {
    report.busy = true;
    return CallKind::kRegister;
  }

  const bool report_due = ReportDue(now);
  if (!report_due && (park.busy || now < park_at_)) {
    call_wake_ = report_due_;
    if (!park.busy) call_wake_ = std::min(call_wake_, park_at_);
    if (!leases_.empty()) call_wake_ = std::min(call_wake_, renewed_at_ + kRenewOverdue);
    return CallKind::kNone;
  }
  Flight& flight = report_due ? report : park;
  flight.busy = true;
  flight.incarnation = registration_.incarnation;
  request.incarnation = registration_.incarnation;
  request.settings_digest = registration_.settings_digest;
  request.park_ms = 0;
  request.held.clear();
  request.offered.clear();
  request.parts.clear();
  request.finished.clear();
  request.events.clear();
  AddHeld(now, request);
  request.want = flight.want = Want();
  if (report_due) {
    AddOffersAndEvents(request);
    // What a process told before a result arrives before it.
    if (flight.events == events_.size()) AddFinished(request);
    return CallKind::kReport;
  }
  const Duration longest = leases_.empty() ? kIdlePark : kHeartbeat;
  request.park_ms = static_cast<uint32_t>(longest / milliseconds(1));
  return CallKind::kPark;
}

bool AgentCore::ReportDue(Instant now) const {
  return offers_ > 0 || !events_.empty() || report_due_ <= now ||
         (!leases_.empty() && now - renewed_at_ >= kRenewOverdue);
}

uint32_t AgentCore::Want() const {
  if (end_ != AgentEnd::kNone || kept_bytes_ > kMaxKeptBytes) return 0;
  uint32_t ready = 0;
  for (const auto& [number, process] : processes_) {
    if (process.state == ProcessState::kReady) ++ready;
  }
  const size_t have = unfinished_ + flights_[0].want + flights_[1].want;
  uint32_t target = ready == 0 ? 0 : stalled_ ? 2 * ready : pace_.Target(ready);
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

void AgentCore::AddOffersAndEvents(ExchangeRequest& request) {
  if (offers_ > 0) {
    for (const auto& [key, batch] : leases_) {
      if (batch.offered) {
        request.offered.push_back({batch.name.id, batch.name.fence, batch.digest});
      }
    }
  }
  size_t budget = kMaxRowsBytes;
  for (const Event& event : events_) {
    const size_t cost = event.message.size() + event.log.size() + kEntryBytes;
    if (cost > budget && !request.events.empty()) break;
    budget -= std::min(cost, budget);
    request.events.push_back({event.process, event.kind, event.message, event.log});
  }
  flights_[0].events = request.events.size();
}

void AgentCore::AddHeld(Instant now, ExchangeRequest& request) {
  if (now - renewed_at_ < kRenewAfter) return;
  renewed_at_ = now;
  for (const auto& [number, process] : processes_) {
    for (const Given& given : process.given) {
      const StatusReading& status = process.status;
      Batch& batch = leases_.at(given.key);
      // In async mode the page tells of the oldest one in flight only.
      batch.started = given.sequence < status.sequence ||
                      (given.sequence == status.sequence && status.phase >= Phase::kRun) ||
                      (registration_.async && status.Working());
    }
  }
  for (const auto& [key, batch] : leases_) {
    if (batch.refused || batch.offered) continue;
    request.held.push_back({batch.name.id, batch.name.fence, batch.started});
  }
}

void AgentCore::AddFinished(ExchangeRequest& request) {
  size_t budget = kMaxRowsBytes;
  report_due_ = kNever;
  while (!unreported_.empty()) {
    const Key key = unreported_.front();
    const Batch* batch = Find(key);
    if (batch != nullptr && !AddResult(key, *batch, budget, request)) {
      report_due_ = Instant{};  // more is waiting: the next report follows this one
      return;
    }
    unreported_.pop_front();
  }
}

// False when it does not fit any more; a part of its rows may have been added.
bool AgentCore::AddResult(Key key, const Batch& batch, size_t& budget, ExchangeRequest& request) {
  const LeaseName& name = batch.name;
  const std::string_view rows = std::string_view(batch.rows).substr(batch.rows_received);
  const size_t texts = batch.error_kind.size() + batch.message.size() + batch.log.size();
  const size_t cost = rows.size() + texts + kEntryBytes;
  if (cost > budget) {
    if (rows.size() + kEntryBytes > kMaxRowsBytes && budget > kEntryBytes) {
      const std::string_view part = rows.substr(0, budget - kEntryBytes);
      request.parts.push_back({name.id, name.fence, batch.rows_received, part});
      flights_[0].parts.emplace_back(key, batch.rows_received + part.size());
    }
    budget = 0;
    return false;
  }
  budget -= cost;
  Finished finished;
  finished.id = name.id;
  finished.fence = name.fence;
  finished.kind = batch.kind;
  finished.process = batch.process;
  finished.run_ns = batch.run_ns;
  finished.cpu_ns = batch.cpu_ns;
  finished.elapsed_ns = batch.elapsed_ns;
  finished.items_succeeded = batch.items_succeeded;
  finished.row_count = batch.row_count;
  finished.rows_offset = batch.rows_received;
  finished.rows = rows;
  finished.cause = batch.cause;
  finished.error_kind = batch.error_kind;
  finished.message = batch.message;
  finished.log = batch.log;
  finished.output = batch.output;
  request.finished.push_back(finished);
  flights_[0].finished.push_back(key);
  return true;
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
    for (const Adopted& adopted : reply.adopted) Adopt(adopted, now);
  }
  EndFlight(f, now + kRepeat);
  for (const Leased& leased : reply.leased) AddLease(leased, !current, now);
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
      must_register_ = true;
    }
  } else if (failure == CallFailure::kBusy) {
    reachable_at_ = now;
  }
  renewed_at_ = Instant{};  // whatever it listed may not have been renewed
  if (call == CallKind::kRegister) {
    f.busy = false;
  } else {
    EndFlight(f, now);
  }
  BackOff(now);
}

void AgentCore::BackOff(Instant now) {
  backoff_ = std::clamp(backoff_ * 2, kFirstBackOff, kLastBackOff);
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
  next_process_ = registration.first_process;
  process_end_ = registration.first_process + kProcessRange;
  renewed_at_ = Instant{};
  unreported_.clear();
  report_due_ = kNever;
  offers_ = 0;
  for (auto& [key, batch] : leases_) {
    if (batch.refused) continue;
    batch.offered = true;
    batch.rows_received = 0;  // parts died with the incarnation that sent them
    ++offers_;
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

void AgentCore::Adopt(const Adopted& adopted, Instant now) {
  const auto it = names_.find({adopted.id, adopted.old_fence});
  if (it == names_.end()) return;
  const Key key = it->second;
  Batch& batch = leases_.at(key);
  if (!batch.offered) return;
  names_.erase(it);
  batch.name.fence = adopted.fence;
  names_.emplace(batch.name, key);
  batch.offered = false;
  --offers_;
  if (batch.state == State::kFinished) {
    unreported_.push_back(key);
    Due(now);
  }
}

void AgentCore::AddLease(const Leased& leased, bool offered, Instant now) {
  const LeaseName name{leased.id, leased.fence};
  if (end_ == AgentEnd::kFinished || end_ == AgentEnd::kLost || names_.contains(name)) return;
  const Key key = next_key_++;
  Batch& batch = leases_[key];
  batch.name = name;
  batch.digest = leased.digest;
  batch.work = leased.work;
  batch.offered = offered;
  if (offered) ++offers_;
  names_.emplace(name, key);
  ++unfinished_;
  if (end_ != AgentEnd::kNone) return Finish(key, batch, Finished::Kind::kReturned, now);
  queue_.push_back(key);
}

}  // namespace parallelrun
