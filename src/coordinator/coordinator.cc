#include "coordinator/coordinator.h"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "base/mutation.h"
#include "coordinator/item_names.h"
#include "job/verdict.h"

namespace parallelrun {
namespace {

constexpr double kSlowFactor = 3;  // times the mean
// Agents have the processes write them when they hear of the verdict.
constexpr char kStacks[] =
    "where each process is in Python stands at the end of its log, "
    "user/stderr/<node>/<process>.stderr.txt; mend that, or raise "
    "spec.progressUpdateTimeoutSeconds";

}  // namespace

Coordinator::Coordinator(CoordinatorLimits options, Ledger& ledger, PlanStore& plan,
                         JobState& state, Instant now)
    : options_(options),
      ledger_(ledger),
      plan_(plan),
      state_(state),
      working_(now),
      availability_(state, ledger.epoch(),
                    {options.lease, options.run_max_try, options.speculation}, ledger.fresh(), now),
      newest_(options.look, now),
      nodes_(options.nodes),
      closing_(options.shutdown_timeout),
      refusals_(options.speculation),
      started_(now),
      last_tick_(now),
      last_progress_(now) {
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

// --- plan

Status Coordinator::AddChunk(const std::string& encoded, Instant now) {
  working_.Pass(now);
  if (over()) return {};
  std::string_view bytes = encoded;
  const Result<DecodedRecord> decoded = DecodeRecord(bytes);
  if (!decoded.ok()) return decoded.error();
  const Ledger::Appended appended = ledger_.AppendEncoded(encoded);
  const Status applied = state_.Apply(decoded->record, appended.record, appended.rows);
  if (!applied.ok()) return applied;
  availability_.Plan(appended.position, state_.counts().planned);
  last_progress_ = working_.At(now);
  return {};
}

void Coordinator::EndPlan(Instant now) {
  working_.Pass(now);
  if (!over()) Record(PlanEndRecord{state_.counts().planned, state_.counts().items_planned});
  Decide(now);
  AnswerWoken(now);
}

void Coordinator::FailPlan(const Error& error, Instant now) {
  if (!over()) Conclude({Outcome::kFailed, "InputUnusable", error.message});
  AnswerWoken(now);
}

// --- ledger and time

void Coordinator::OnDurable(Instant now) {
  working_.Pass(now);
  const uint64_t durable = ledger_.durable();
  availability_.Durable(durable);
  waiters_.Durable(durable);
  if (phase_ == Phase::kDeciding && durable >= verdict_position_) {
    // Nobody is told before a look that began now, or later, has found no newer epoch.
    if (!verdict_durable_at_) {
      verdict_durable_at_ = now;
      newest_.Ask();
    }
  }
  if (closing_.Durable(durable)) waiters_.WakeAll();  // now they may be told
  if (phase_ == Phase::kFinalizing && published_position_ > 0 && durable >= published_position_) {
    phase_ = Phase::kEnded;
  }
  AnswerWoken(now);
}

void Coordinator::Tick(Instant now) {
  working_.Pass(now);
  const Instant worked = working_.At(now);
  const Duration since = worked - last_tick_;
  last_tick_ = worked;
  for (const Held& held : availability_.Expire(worked)) {
    nodes_.Find(held.lease.node)->expired.push_back(held);
  }
  // Nobody offered them: their node died together with the earlier coordinator.
  for (const BatchId id : availability_.TimePassed(worked)) {
    const auto started = state_.started().find(id);
    if (started != state_.started().end()) Lose(0, {id, started->second});
  }
  nodes_.ForgetSilent(worked, options_.lease, [&](uint32_t node) { return waiters_.Has(node); });
  rate_.Observe(state_.counts().succeeded + state_.counts().failed, now);
  // Only time that could be used counts. What came right before this call is progress of now.
  if (!nodes_.AnyAtWork() || !paused_.empty() || !newest_.unseen().empty() || newest_.Hangs(now)) {
    last_progress_ = std::min(last_progress_ + since, worked);
  }
  if (phase_ == Phase::kRunning) {
    if (std::optional<Verdict> verdict = Overdue(now)) {
      Conclude(*verdict);
    } else {
      Decide(now);
    }
  }
  if (phase_ == Phase::kClosing) {
    if (closing_.Overdue(worked)) {
      LoseShutdowns(state_.shutdowns().Open(), "nothing was heard of its node any more");
    }
    LoseShutdowns(nodes_.OfNobody(state_.shutdowns().Open()),
                  "its node is not part of the job now");
    Decide(now);
  }
  // Time alone makes something slow: whoever is idle may try it a second time.
  if (const auto slow = Slow(); slow && availability_.HasSlow(*slow, worked)) waiters_.WakeHungry();
  OnDurable(now);
}

void Coordinator::Unpause() {
  if (!paused_.empty()) waiters_.WakeHungry();
  paused_.clear();
}

std::optional<Verdict> Coordinator::Overdue(Instant now) const {
  const JobCounts& counts = state_.counts();
  const bool done = counts.succeeded + counts.failed == counts.planned;
  if (!done || state_.plan_ended()) {
    if (working_.At(now) - last_progress_ <= options_.progress_timeout) return std::nullopt;
    const std::string silent = nodes_.Silent();
    const std::string waits = silent.empty() ? WaitsFor() : silent;
    return Verdict{Outcome::kFailed, "NoProgress",
                   fmt::format("no mini-batch was finished for {}: {}",
                               HumanDuration(options_.progress_timeout),
                               !waits.empty()             ? waits
                               : nodes_.registered() == 0 ? "no node is there"
                                                          : kStacks)};
  }
  // The processes have nothing to do: what is waited for is the listing.
  if (counts.planned == 0) {
    if (working_.At(now) - started_ <= options_.first_task_timeout) return std::nullopt;
    return Verdict{Outcome::kFailed, "FirstTaskTimeout",
                   fmt::format("no mini-batch was planned within {}: the listing of the input is "
                               "too slow; raise spec.firstTaskCreationTimeoutSeconds",
                               HumanDuration(options_.first_task_timeout))};
  }
  const Duration most = std::max(options_.first_task_timeout, options_.progress_timeout);
  if (working_.At(now) - last_progress_ <= most) return std::nullopt;
  return Verdict{Outcome::kFailed, "FirstTaskTimeout",
                 fmt::format("all {} mini-batches that are planned are finished, and no other was "
                             "planned for {}: the listing of the input is too slow; raise "
                             "spec.firstTaskCreationTimeoutSeconds",
                             counts.planned, HumanDuration(most))};
}

// --- end

void Coordinator::Decide(Instant now) {
  if (over()) return;
  const auto items = [this](BatchId id) { return ItemsOfMiniBatch(state_, plan_, id); };
  if (std::optional<Verdict> verdict = parallelrun::Decide(state_, options_.rules, items)) {
    if (!AwaitsShutdowns(*verdict, now)) Conclude(*verdict);
    return;
  }
  if (ProgramFailed()) {
    Conclude(ProgramVerdict(state_, items));
    return;
  }
  // Every expected node has given up on init(), or the budget of the whole job is spent.
  const size_t gave_up = nodes_.gave_up();
  const uint64_t budget = uint64_t{2} * nodes_.expected() * options_.processes;
  const bool spent = budget > 0 && init_failures_ >= budget &&
                     working_.At(now) - started_ > seconds(120) &&
                     state_.counts().succeeded + state_.counts().failed == 0 && !nodes_.any_ready();
  if ((gave_up > 0 && gave_up >= nodes_.expected()) || spent) {
    Conclude({Outcome::kFailed, "InitFailed",
              fmt::format("init() failed in every process ({} times): {}", init_failures_,
                          init_error_)});
  }
}

// A name that is not defined fails each mini-batch at each try, for hours perhaps. But one branch
// of the script may have it that few items reach, and a module may be missing on one node: so it
// takes the word of every process of every node, on more than one mini-batch, and not one that
// succeeded.
bool Coordinator::ProgramFailed() const {
  if (state_.counts().succeeded > 0 || program_failed_at_.size() < 2) return false;
  uint64_t failed = 0;
  for (const auto& [node, processes] : program_failed_) {
    failed += std::min<uint64_t>(processes.size(), options_.processes);
  }
  return failed >= uint64_t{nodes_.expected()} * options_.processes;
}

bool Coordinator::AwaitsShutdowns(const Verdict& verdict, Instant now) {
  if (PARALLELRUN_MUTATED(kVerdictBeforeShutdown)) return false;
  const bool done = verdict.outcome == Outcome::kSucceeded || verdict.reason == kShutdownFailed;
  if (!done || !state_.shutdowns().AnyOpen()) return false;
  if (phase_ == Phase::kClosing) return true;
  phase_ = Phase::kClosing;
  // A process that is told to stop cannot go on: the next epoch must find all settled too.
  closing_.Begin(working_.At(now), ledger_.appended());
  if (closing_.Durable(ledger_.durable())) waiters_.WakeAll();
  return true;
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
  AnswerWoken(now);
}

void Coordinator::Close(const Error& why) {
  for (const auto& [exchange, waiter] : waiters_.TakeAll()) waiter.answer(why);
}

// --- answers

Directive Coordinator::DirectiveFor(uint32_t node) const {
  if (over()) return Directive::kFinish;
  if (drains_ || !nodes_.Expected(node)) return Directive::kDrain;
  return closing_.tells() ? Directive::kClose : Directive::kGoOn;
}

bool Coordinator::MayLease(const Waiter& waiting) const {
  if (phase_ != Phase::kRunning || !paused_.empty() || newest_.superseded() ||
      availability_.awaits_nodes())
    return false;
  if (!nodes_.Expected(waiting.node) || waiting.want == 0) return false;
  return nodes_.InForce(waiting.node, waiting.incarnation);
}

uint64_t Coordinator::Grants(const Waiter& waiting) const {
  if (!MayLease(waiting)) return 0;
  const uint64_t all = uint64_t{std::max(nodes_.expected(), 1U)} * std::max(options_.processes, 1U);
  return GrantLimit(waiting.want, availability_.Available(waiting.node),
                    nodes_.Find(waiting.node)->processes, all);
}

std::optional<Duration> Coordinator::Slow() const {
  if (!options_.speculation || elapsed_results_ == 0 || !state_.plan_ended()) return std::nullopt;
  if (availability_.pending() > 0) return std::nullopt;
  const double mean = elapsed_seconds_ / static_cast<double>(elapsed_results_);
  const auto much = Duration(static_cast<int64_t>(kSlowFactor * mean * 1e6));
  return std::max(much, options_.slow_least);
}

// For a process that would be idle, what takes much longer than the others did.
std::optional<LeaseName> Coordinator::GrantSecond(const Waiter& waiting, Instant now) {
  const std::optional<Duration> slow = Slow();
  if (!slow || !MayLease(waiting)) return std::nullopt;
  if (availability_.HeldCount(waiting.node) >= nodes_.Find(waiting.node)->processes)
    return std::nullopt;
  return availability_.GrantSecond({waiting.node, waiting.incarnation, waiting.number}, *slow,
                                   working_.At(now));
}

bool Coordinator::WantsLook(Instant now) const {
  if (PARALLELRUN_MUTATED(kNoLookForNewer)) return verdict_durable_at_.has_value();
  return newest_.Wants(now);
}

void Coordinator::OnLooked(Instant begun, const Status& seen, Instant now) {
  newest_.OnLooked(begun, seen, now);
  if (phase_ == Phase::kDeciding && verdict_durable_at_) {
    if (seen.ok() && begun >= *verdict_durable_at_) {
      phase_ =
          state_.verdict()->outcome == Outcome::kSucceeded ? Phase::kFinalizing : Phase::kEnded;
      waiters_.WakeAll();
    } else {
      newest_.Ask();
    }
  }
  AnswerWoken(now);
}

void Coordinator::AnswerWoken(Instant now) {
  waiters_.ParksOver(now);
  if (availability_.TakeFreed()) waiters_.WakeHungry();
  if (newest_.superseded()) return;
  // A verdict is told once it is durable, so nobody leaves for one that a crash undoes.
  if (phase_ == Phase::kDeciding && !PARALLELRUN_MUTATED(kVerdictBeforeSync)) return;
  const auto work = [&] {
    const std::optional<Duration> slow = Slow();
    return availability_.HasAny() || (slow && availability_.HasSlow(*slow, working_.At(now)));
  };
  uint64_t last = 0;
  while (Waiter* const waiting = waiters_.Next(last, work())) {
    last = waiting->exchange;
    // Nor those that came later: they stay woken, and the look that they wait for is on its way.
    const bool may = newest_.MayAnswer(waiting->arrived, now);
    if (!may && !PARALLELRUN_MUTATED(kNoLookForNewer)) return;
    const bool durable =
        PARALLELRUN_MUTATED(kAcknowledgeBeforeSync) || waiting->position <= ledger_.durable();
    if (durable && TryAnswer(*waiting, now)) {
      waiters_.Answered(*waiting);
    } else {
      waiters_.Wait(*waiting, durable);
    }
    // What was planned cannot be read: nobody hears more before that verdict is durable.
    if (phase_ == Phase::kDeciding && !PARALLELRUN_MUTATED(kVerdictBeforeSync)) return;
  }
  waiters_.AllSeen();
}

bool Coordinator::Concerns(const Waiter& waiting, Instant now) const {
  if (waiting.news || waiting.park_until <= now) return true;
  switch (DirectiveFor(waiting.node)) {
    case Directive::kGoOn: return false;
    case Directive::kDrain:
    case Directive::kFinish: return true;
    // Once is enough for as long as shutdown() takes: its agent stays, and asks again and again.
    case Directive::kClose: return !closing_.WasTold(waiting.node, waiting.incarnation);
  }
  return true;
}

bool Coordinator::TryAnswer(Waiter& waiting, Instant now) {
  const Directive what = DirectiveFor(waiting.node);  // a verdict from here on is not durable
  const uint64_t grants = Grants(waiting);
  std::optional<LeaseName> lease = grants == 0 ? GrantSecond(waiting, now) : std::nullopt;
  if (grants == 0 && !lease && !Concerns(waiting, now)) return false;
  std::deque<std::string> works;  // stable addresses for the reply's views
  size_t bytes = 0;
  for (uint64_t i = 0; (lease || i < grants) && bytes < kMaxRowsBytes; ++i) {
    if (!lease) {
      lease = availability_.Grant({waiting.node, waiting.incarnation, waiting.number},
                                  working_.At(now));
    }
    if (!lease) break;
    Result<PlannedWork> work = plan_.Work(state_, lease->id);
    if (!work.ok()) {
      availability_.End(*lease);
      if (!over()) Conclude({Outcome::kFailed, "LedgerUnreadable", work.error().message});
      break;
    }
    works.push_back(std::move(work->work));
    bytes += works.back().size();
    waiting.reply.leased.push_back({lease->id, lease->fence, work->digest, works.back()});
    lease.reset();
  }
  waiting.reply.epoch = ledger_.epoch();
  waiting.reply.directive = what;
  if (what == Directive::kClose) closing_.Told(waiting.node, waiting.incarnation);
  waiting.answer(waiting.reply);
  return true;
}

// Beside the counts: whether anybody waits who could be answered, by a look at all. A second lease
// may come with the next tick.
std::string Coordinator::Check(Instant now) const {
  if (std::string wrong = availability_.Check(); !wrong.empty()) return wrong;
  if (!newest_.Fresh(now) || phase_ == Phase::kDeciding) return "";
  for (const auto& [exchange, waiting] : waiters_.all()) {
    if (waiting.position > waiters_.durable()) continue;
    if (!Concerns(waiting, now) && Grants(waiting) == 0) continue;
    return fmt::format("exchange {} of node {} waits for nothing", exchange, waiting.node);
  }
  return "";
}

std::string Coordinator::WaitsFor() const {
  if (!paused_.empty()) return paused_;
  return newest_.unseen().empty() ? nodes_.WaitsFor() : newest_.unseen();
}

std::vector<NodeView> Coordinator::nodes() const {
  std::vector<NodeView> views;
  for (const auto& [index, node] : nodes_.all()) {
    views.push_back(
        {index, node.registered, node.gave_up, node.processes, availability_.HeldCount(index)});
  }
  return views;
}

}  // namespace parallelrun
