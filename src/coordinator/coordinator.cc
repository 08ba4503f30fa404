#include "coordinator/coordinator.h"

#include <algorithm>
#include <charconv>

#include <spdlog/fmt/fmt.h>

#include "base/mutation.h"

namespace parallelrun {
namespace {

// Process names are unique within a node for ever: each incarnation gets a range of its own.
constexpr uint64_t kProcessNames = 1'000;
constexpr uint64_t kIncarnationsOfEpoch = 200;
constexpr Duration kFrozenGap = seconds(2);
constexpr uint32_t kMaxParkMs = 20'000;
constexpr size_t kAgentsRemembered = 100;

}  // namespace

Coordinator::Coordinator(CoordinatorLimits options, Ledger& ledger, PlanStore& plan,
                         JobState& state, Instant now)
    : options_(options),
      ledger_(ledger),
      plan_(plan),
      state_(state),
      leases_(state, ledger.epoch(), options.lease),
      started_(now),
      last_tick_(now),
      last_progress_(now) {
  leases_.AllowBelow(state.counts().planned);
  if (state.verdict()) {
    // An earlier epoch decided; what is left is to publish, and to tell.
    phase_ = state.verdict()->outcome == Outcome::kSucceeded && !state.published()
                 ? Phase::kFinalizing
                 : Phase::kEnded;
  } else {
    Decide(now);
  }
}

Ledger::Appended Coordinator::Record(const parallelrun::Record& record) {
  const Ledger::Appended appended = ledger_.Append(record);
  // Decisions check before they record, so a refusal here is a programmer's error.
  const Status applied = state_.Apply(record, appended.record, appended.rows);
  assert(applied.ok());
  static_cast<void>(applied);
  return appended;
}

// --- nodes

NodeRegistration Coordinator::Register(uint32_t index, const std::string& agent, uint32_t processes,
                                       Instant now, uint64_t pod) {
  Node& node = nodes_[index];
  if (node.registered && node.agent != agent) LoseLeases(index, now);
  if (!node.agent.empty() && node.agent != agent) {
    node.superseded.push_back(node.agent);
    if (node.superseded.size() > kAgentsRemembered) node.superseded.pop_front();
  }
  node.registered = true;
  node.seen = now;
  node.agent = agent;
  node.pod = pod;
  node.processes = std::max(1U, processes);
  node.gave_up = false;
  node.incarnation = {ledger_.epoch(), ++last_incarnation_};
  EndParks(index, now);
  Pump(now);
  const uint64_t range =
      (ledger_.epoch() - options_.first_epoch) * kIncarnationsOfEpoch + node.registrations++;
  return {node.incarnation, static_cast<uint32_t>(range * kProcessNames)};
}

void Coordinator::LoseLeases(uint32_t index, Instant now) {
  for (const LeaseTable::Held& held : leases_.HeldBy(index)) {
    if (held.lease.started && !over()) CountLoss(index, {held.id, held.lease.fence});
    leases_.Release(held.id);
  }
  Decide(now);
}

void Coordinator::CountLoss(uint32_t index, const LeaseName& name) {
  Record(LostRecord{name.id, name.fence});
  const uint16_t losses = state_.batches()[name.id].losses;
  if (losses < options_.max_losses) return;
  const std::string message = fmt::format(
      "its node died {} times while run() worked on it: look for what ends the whole node, such as "
      "memory",
      losses);
  // Without the lease's fence: nobody reported this, so that no later report is a repeat of it.
  FailedRecord failed;
  failed.id = name.id;
  failed.node = index;
  failed.cause = Cause::kProcessEnded;
  failed.final = true;
  failed.kind = "LostTooOften";
  failed.message = message;
  Record(failed);
}

void Coordinator::EndParks(uint32_t index, Instant now) {
  for (Waiting& waiting : waiting_) {
    if (waiting.node == index) waiting.park_until = now;
  }
}

void Coordinator::Leave(uint32_t index, const Incarnation& incarnation, Instant now) {
  const auto found = nodes_.find(index);
  if (found == nodes_.end() || found->second.incarnation != incarnation) return;
  found->second.registered = false;
  for (const LeaseTable::Held& held : leases_.HeldBy(index)) leases_.Release(held.id);
  EndParks(index, now);
  Pump(now);
}

void Coordinator::ConnectionGone(uint32_t index, Instant now) {
  leases_.Shorten(index, now, options_.broken_grace);
}

void Coordinator::Exchange(uint32_t index, const ExchangeRequest& request, Instant now,
                           Answer answer) {
  const auto found = nodes_.find(index);
  if (request.incarnation.epoch > ledger_.epoch()) superseded_ = true;
  if (found == nodes_.end() || !found->second.registered ||
      found->second.incarnation != request.incarnation ||
      request.settings_digest != options_.settings_digest) {
    answer(
        Error{Code::kStale, fmt::format("node {} is not registered as incarnation {}.{} of epoch "
                                        "{}: register again",
                                        index, request.incarnation.epoch,
                                        request.incarnation.number, ledger_.epoch())});
    return;
  }
  Node& node = found->second;
  node.seen = now;
  // A node has one parked request; the newer one stands for it now.
  for (Waiting& waiting : waiting_) {
    if (waiting.node == index) {
      waiting.want = 0;
      waiting.park_until = now;
    }
  }
  Waiting waiting;
  waiting.node = index;
  waiting.incarnation = request.incarnation;
  waiting.want = request.want;
  waiting.park_until = now + milliseconds(std::min(request.park_ms, kMaxParkMs));
  waiting.answer = std::move(answer);

  TakeEvents(index, node, request);
  TakeHeld(index, node, request, now, waiting);
  TakeFinished(index, node, request, now, waiting);
  waiting.news = waiting.position > 0 || !waiting.reply.settled.empty() ||
                 !waiting.reply.refused.empty() || !waiting.reply.adopted.empty() ||
                 !request.parts.empty();
  waiting_.push_back(std::move(waiting));
  Decide(now);
  Pump(now);
}

void Coordinator::TakeEvents(uint32_t index, Node& node, const ExchangeRequest& request) {
  for (const ProcessEvent& event : request.events) {
    const std::string where = event.log.empty() ? "" : fmt::format(" (log {})", event.log);
    switch (event.kind) {
      case ProcessEvent::Kind::kReady: node.ever_ready = true; break;
      case ProcessEvent::Kind::kInitFailed:
        ++init_failures_;
        init_error_ = std::string(event.message) + where;
        break;
      case ProcessEvent::Kind::kScriptUnusable:
        if (!over()) {
          Conclude({Outcome::kFailed, "ScriptUnusable", std::string(event.message) + where});
        }
        break;
      case ProcessEvent::Kind::kExited: break;
      case ProcessEvent::Kind::kMetric: {
        // Told at least once; its number within its process, in decimal, makes a repeat known.
        uint64_t number = 0;
        std::from_chars(event.log.data(), event.log.data() + event.log.size(), number);
        uint64_t& last = node.metrics[event.process];
        if (number <= last) break;
        last = number;
        metrics_.push_back({index, event.process, std::string(event.message)});
        break;
      }
      case ProcessEvent::Kind::kHeader:
        if (!over() && state_.header().empty()) Record(HeaderRecord{event.message});
        break;
      case ProcessEvent::Kind::kGaveUp:
        node.gave_up = true;
        if (init_error_.empty()) init_error_ = std::string(event.message) + where;
        break;
    }
  }
}

void Coordinator::TakeHeld(uint32_t index, const Node& node, const ExchangeRequest& request,
                           Instant now, Waiting& waiting) {
  const auto adopt = [&](BatchId id, const Fence& fence, bool started) {
    const std::optional<Fence> adopted =
        over() ? std::nullopt : leases_.Adopt(index, node.incarnation, id, started, now);
    if (adopted) {
      waiting.reply.adopted.push_back({id, fence, *adopted});
    } else {
      waiting.reply.refused.push_back({id, fence});
    }
  };
  for (const HeldLease& held : request.held) {
    if (leases_.Renew(node.incarnation, held, now)) continue;
    if (Repeated({held.id, held.fence}, waiting)) continue;
    // It expired (a partition, a slow network) and nobody else has it: go on.
    adopt(held.id, held.fence, held.started);
  }
  for (const OfferedLease& offer : request.offered) {
    if (Repeated({offer.id, offer.fence}, waiting)) continue;
    const Result<uint64_t> digest = plan_.Digest(state_, offer.id);
    const bool same =
        PARALLELRUN_MUTATED(kOfferWithoutDigest) || (digest.ok() && *digest == offer.digest);
    if (!same) {
      waiting.reply.refused.push_back({offer.id, offer.fence});
    } else {
      adopt(offer.id, offer.fence, false);
    }
  }
}

bool Coordinator::Repeated(const LeaseName& name, Waiting& waiting) {
  if (!state_.Recorded(name.id, name.fence)) return false;
  // Recorded, perhaps a moment ago: the answer waits for all that was appended so far.
  waiting.position = std::max(waiting.position, ledger_.appended());
  waiting.reply.settled.push_back(name);
  return true;
}

void Coordinator::TakeFinished(uint32_t index, const Node& node, const ExchangeRequest& request,
                               Instant now, Waiting& waiting) {
  for (const RowsPart& part : request.parts) {
    if (over() || !leases_.Holds(node.incarnation, part.id, part.fence)) continue;
    if (part.offset != state_.PartBytes(part.id, part.fence)) continue;  // a repeat
    const auto at = Record(RowsRecord{part.id, part.fence, part.rows});
    waiting.position = std::max(waiting.position, at.position);
  }
  for (const Finished& done : request.finished) {
    const LeaseName name{done.id, done.fence};
    if (Repeated(name, waiting)) continue;
    if (over() || !leases_.Holds(node.incarnation, done.id, done.fence)) {
      std::optional<Fence> adopted;
      if (!over() && done.kind == Finished::Kind::kSucceeded) {
        adopted = leases_.Adopt(index, node.incarnation, done.id, true, now);
      }
      if (adopted) {
        waiting.reply.adopted.push_back({done.id, done.fence, *adopted});
      } else {
        waiting.reply.refused.push_back(name);
      }
      continue;
    }
    switch (done.kind) {
      case Finished::Kind::kReturned: waiting.reply.settled.push_back(name); break;
      case Finished::Kind::kSucceeded: {
        if (done.rows_offset != state_.PartBytes(done.id, done.fence)) {
          waiting.reply.refused.push_back(name);  // a part is missing: run it again
          break;
        }
        const auto at =
            Record(ResultRecord{done.id, done.fence, index, done.process, done.run_ns,
                                done.items_succeeded, done.row_count, done.rows, Times(done, now)});
        waiting.position = std::max(waiting.position, at.position);
        waiting.reply.settled.push_back(name);
        last_progress_ = now;
        break;
      }
      case Finished::Kind::kFailed: {
        FailedRecord failed;
        failed.id = done.id;
        failed.fence = done.fence;
        failed.node = index;
        failed.process = done.process;
        failed.run_ns = done.run_ns;
        failed.cause = done.cause;
        failed.final = state_.batches()[done.id].failed_attempts + 1U >=
                       options_.run_max_try + (PARALLELRUN_MUTATED(kRunMaxTryIgnored) ? 1U : 0U);
        failed.kind = done.error_kind;
        failed.message = done.message;
        failed.log = done.log;
        failed.times = Times(done, now);
        waiting.position = std::max(waiting.position, Record(failed).position);
        waiting.reply.settled.push_back(name);
        last_progress_ = now;
        break;
      }
    }
    leases_.Release(done.id);
  }
}

AttemptTimes Coordinator::Times(const Finished& done, Instant now) const {
  return {done.elapsed_ns, done.cpu_ns, (now.time_since_epoch() + options_.wall_offset).count()};
}

// --- plan

Status Coordinator::AddChunk(const std::string& encoded, Instant now) {
  std::string_view bytes = encoded;
  const Result<DecodedRecord> decoded = DecodeRecord(bytes);
  if (!decoded.ok()) return decoded.error();
  const Ledger::Appended appended = ledger_.AppendEncoded(encoded);
  const Status applied = state_.Apply(decoded->record, appended.record, appended.rows);
  if (!applied.ok()) return applied;
  undurable_chunks_.emplace_back(appended.position, state_.counts().planned);
  last_progress_ = now;
  return {};
}

void Coordinator::EndPlan(Instant now) {
  if (!over()) Record(PlanEndRecord{state_.counts().planned, state_.counts().items_planned});
  Decide(now);
  Pump(now);
}

void Coordinator::FailPlan(const Error& error, Instant now) {
  if (!over()) Conclude({Outcome::kFailed, "InputUnusable", error.message});
  Pump(now);
}

// --- ledger and time

void Coordinator::OnDurable(Instant now) {
  const uint64_t durable = ledger_.durable();
  while (!undurable_chunks_.empty() && undurable_chunks_.front().first <= durable) {
    leases_.AllowBelow(undurable_chunks_.front().second);
    undurable_chunks_.pop_front();
  }
  if (phase_ == Phase::kDeciding && durable >= verdict_position_) {
    if (!ledger_.CheckNewest().ok()) {
      superseded_ = true;
      return;
    }
    phase_ = state_.verdict()->outcome == Outcome::kSucceeded ? Phase::kFinalizing : Phase::kEnded;
  }
  if (phase_ == Phase::kFinalizing && published_position_ > 0 && durable >= published_position_) {
    phase_ = Phase::kEnded;
  }
  Pump(now);
}

void Coordinator::Tick(Instant now) {
  const Duration gap = now - last_tick_;
  last_tick_ = now;
  if (gap > kFrozenGap) leases_.Extend(gap);
  leases_.Expire(now);
  ForgetSilentNodes(gap > kFrozenGap ? now - gap : now);
  rate_.Observe(state_.counts().succeeded + state_.counts().failed, now);
  const bool working =
      std::any_of(nodes_.begin(), nodes_.end(), [](const auto& n) { return n.second.registered; });
  if (!working || !paused_.empty()) last_progress_ += gap;  // only time that could be used counts
  if (phase_ == Phase::kRunning) {
    if (state_.counts().planned == 0 && now - started_ > options_.first_task_timeout) {
      Conclude({Outcome::kFailed, "FirstTaskTimeout",
                fmt::format("no mini-batch was planned within {}: the listing of the input is too "
                            "slow; raise spec.firstTaskCreationTimeoutSeconds",
                            HumanDuration(options_.first_task_timeout))});
    } else if (now - last_progress_ > options_.progress_timeout) {
      Conclude({Outcome::kFailed, "NoProgress",
                fmt::format("no mini-batch was finished for {}: see logs/user/stderr for what the "
                            "processes do, or raise spec.progressUpdateTimeoutSeconds",
                            HumanDuration(options_.progress_timeout))});
    } else {
      Decide(now);
    }
  }
  Pump(now);
}

void Coordinator::ForgetSilentNodes(Instant now) {
  for (const Waiting& waiting : waiting_) nodes_[waiting.node].seen = now;  // its call is open
  for (auto& [index, node] : nodes_) {
    if (now - node.seen > options_.lease) node.registered = false;
  }
}

// --- end

void Coordinator::Decide(Instant now) {
  if (over()) return;
  if (std::optional<Verdict> verdict =
          parallelrun::Decide(state_, options_.thresholds, options_.append_row)) {
    Conclude(*verdict);
    return;
  }
  // Every expected node has given up on init(), or the budget of the whole job is spent.
  size_t gave_up = 0;
  bool ready = state_.counts().succeeded + state_.counts().failed > 0;
  for (const auto& [index, node] : nodes_) {
    gave_up += node.gave_up && Expected(index) ? 1 : 0;
    ready = ready || node.ever_ready;
  }
  const uint64_t budget = uint64_t{2} * options_.nodes * options_.processes;
  const bool spent =
      !ready && now - started_ > seconds(120) && budget > 0 && init_failures_ >= budget;
  if ((gave_up > 0 && gave_up >= options_.nodes) || spent) {
    Conclude({Outcome::kFailed, "InitFailed",
              fmt::format("init() failed in every process ({} times): {}", init_failures_,
                          init_error_)});
  }
}

void Coordinator::Conclude(const Verdict& verdict) {
  phase_ = Phase::kDeciding;
  VerdictRecord record;
  record.outcome = verdict.outcome;
  record.reason = verdict.reason;
  record.message = verdict.message;
  verdict_position_ = Record(record).position;
}

void Coordinator::OnPublished(const PublishedRecord& published, Instant now) {
  published_position_ = Record(published).position;
  Pump(now);
}

void Coordinator::Close(const Error& why) {
  std::list<Waiting> waiting = std::move(waiting_);
  waiting_.clear();
  for (Waiting& w : waiting) w.answer(why);
}

// --- answers

Directive Coordinator::DirectiveFor(uint32_t node) const {
  if (over()) return Directive::kFinish;
  return phase_ == Phase::kDraining || !Expected(node) ? Directive::kDrain : Directive::kGoOn;
}

uint64_t Coordinator::Grants(const Waiting& waiting) const {
  if (phase_ != Phase::kRunning || !paused_.empty() || superseded_) return 0;
  if (!Expected(waiting.node)) return 0;
  const auto found = nodes_.find(waiting.node);
  if (found == nodes_.end() || found->second.incarnation != waiting.incarnation) return 0;
  const uint64_t all = uint64_t{std::max(options_.nodes, 1U)} * std::max(options_.processes, 1U);
  return GrantLimit(waiting.want, leases_.pending(), found->second.processes, all);
}

void Coordinator::Pump(Instant now) {
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (TryAnswer(*it, now)) {
      it = waiting_.erase(it);
    } else {
      ++it;
    }
  }
}

bool Coordinator::TryAnswer(Waiting& waiting, Instant now) {
  const bool durable =
      PARALLELRUN_MUTATED(kAcknowledgeBeforeSync) || waiting.position <= ledger_.durable();
  if (!durable) return false;
  // A verdict is told once it is durable, so nobody leaves for one that a crash undoes.
  if (phase_ == Phase::kDeciding && !PARALLELRUN_MUTATED(kVerdictBeforeSync)) return false;
  const Directive what = DirectiveFor(waiting.node);
  const uint64_t grants = Grants(waiting);
  if (grants == 0 && !waiting.news && what == Directive::kGoOn && waiting.park_until > now) {
    return false;
  }
  std::deque<std::string> works;  // stable addresses for the reply's views
  size_t bytes = 0;
  for (uint64_t i = 0; i < grants && bytes < kMaxRowsBytes; ++i) {
    const std::optional<LeaseName> lease = leases_.Grant(waiting.node, waiting.incarnation, now);
    if (!lease) break;
    Result<PlannedWork> work = plan_.Work(state_, lease->id);
    if (!work.ok()) {
      leases_.Release(lease->id);
      if (!over()) Conclude({Outcome::kFailed, "LedgerUnreadable", work.error().message});
      break;
    }
    works.push_back(std::move(work->work));
    bytes += works.back().size();
    waiting.reply.leased.push_back({lease->id, lease->fence, work->digest, works.back()});
  }
  waiting.reply.epoch = ledger_.epoch();
  waiting.reply.directive = what;
  waiting.answer(waiting.reply);
  return true;
}

std::vector<NodeView> Coordinator::nodes() const {
  std::vector<NodeView> views;
  for (const auto& [index, node] : nodes_) {
    views.push_back(
        {index, node.registered, node.gave_up, node.processes, leases_.HeldCount(index)});
  }
  return views;
}

size_t Coordinator::registered_nodes() const {
  size_t count = 0;
  for (const auto& [index, node] : nodes_) count += node.registered ? 1 : 0;
  return count;
}

}  // namespace parallelrun
