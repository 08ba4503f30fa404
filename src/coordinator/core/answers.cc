#include "coordinator/core/answers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "job/rate.h"
#include "job/verdict.h"

namespace parallelrun::coordinator {

job::Directive Answers::DirectiveFor(const Waiter& waiting) const {
  const job::Directive what = of_.ending.DirectiveFor(of_.nodes.Expected(waiting.node));
  if (what != job::Directive::kGoOn) return what;
  const bool ask =
      of_.standstill.Asks(waiting.node, waiting.incarnation) || of_.init_watch.Asks(waiting.node);
  return ask ? job::Directive::kWhere : what;
}

bool Answers::MayLease(const Waiter& waiting, Instant now) const {
  return waiting.want > 0 && !plan_unread_ &&
         gates_.MayGet(waiting.node, waiting.incarnation, waiting.arrived, now) == Gate::kOpen;
}

uint64_t Answers::Grants(const Waiter& waiting, Instant now) const {
  if (!MayLease(waiting, now)) return 0;
  const uint64_t all = uint64_t{std::max(of_.nodes.expected(), 1U)} * std::max(processes_, 1U);
  return job::GrantLimit(waiting.want, of_.availability.Available(waiting.node),
                         of_.nodes.Find(waiting.node)->processes, all);
}

std::optional<job::LeaseName> Answers::GrantSecond(const Waiter& waiting, Instant now,
                                                   WorkInstant worked) {
  const std::optional<Duration> slow = of_.attempts.Slow();
  if (!slow || !MayLease(waiting, now)) return std::nullopt;
  if (of_.availability.HeldCount(waiting.node) >= of_.nodes.Find(waiting.node)->processes) {
    return std::nullopt;
  }
  return of_.availability.GrantSecond({waiting.node, waiting.incarnation, waiting.number}, *slow,
                                      worked);
}

void Answers::WakeForSlow(WorkInstant worked) {
  const std::optional<Duration> slow = of_.attempts.Slow();
  if (slow && of_.availability.HasSlow(*slow, worked)) waiters_.WakeHungry();
}

void Answers::PlanRead() {
  plan_unread_ = false;
  waiters_.WakeHungry();
}

// A verdict is told once it is durable, so that nobody leaves for one that a crash undoes.
bool Answers::MayTell() const { return of_.ending.phase() != Ending::Phase::kDeciding; }

void Answers::AnswerWoken(Instant now, WorkInstant worked) {
  waiters_.ParksOver(now);
  if (of_.availability.TakeFreed()) waiters_.WakeHungry();
  if (of_.newest.superseded()) return;
  const auto work = [&] {
    const std::optional<Duration> slow = of_.attempts.Slow();
    return of_.availability.HasAny() || (slow && of_.availability.HasSlow(*slow, worked));
  };
  uint64_t last = 0;
  // What was planned and cannot be read is a verdict too: nobody hears more before it is durable.
  while (MayTell()) {
    Waiter* const waiting = waiters_.Next(last, work());
    if (waiting == nullptr) return waiters_.AllSeen();
    last = waiting->exchange;
    // Nor those that came later: they stay woken, and the look that they wait for is on its way.
    if (!of_.newest.MayAnswer(waiting->arrived, now)) return;
    const bool durable = waiting->position <= of_.journal.durable();
    if (durable && TryAnswer(*waiting, now, worked)) {
      of_.nodes.CallEnded(waiting->node);
      waiters_.Answered(*waiting);
    } else {
      waiters_.Wait(*waiting, durable);
    }
  }
}

bool Answers::Concerns(const Waiter& waiting, Instant now) const {
  if (waiting.news || waiting.park_until <= now) return true;
  switch (DirectiveFor(waiting)) {
    case job::Directive::kGoOn: return false;
    case job::Directive::kDrain:
    case job::Directive::kFinish:
    case job::Directive::kWhere: return true;
    // Once is enough for as long as shutdown() takes: its agent stays, and asks again and again.
    case job::Directive::kClose:
      return !of_.ending.closing().WasTold(waiting.node, waiting.incarnation);
  }
  return true;
}

bool Answers::TryAnswer(Waiter& waiting, Instant now, WorkInstant worked) {
  const job::Directive what = DirectiveFor(waiting);  // a verdict from here on is not durable
  const uint64_t grants = Grants(waiting, now);
  std::optional<job::LeaseName> lease =
      grants == 0 ? GrantSecond(waiting, now, worked) : std::nullopt;
  if (grants == 0 && !lease && !Concerns(waiting, now)) return false;
  std::deque<std::string> works;  // stable addresses for the reply's views
  size_t bytes = 0;
  for (uint64_t i = 0; (lease || i < grants) && bytes < job::kMaxRowsBytes; ++i) {
    if (!lease) {
      lease = of_.availability.Grant({waiting.node, waiting.incarnation, waiting.number}, worked);
    }
    if (!lease) break;
    if (!of_.plan.AtHand(of_.journal.state(), lease->id)) {
      of_.availability.End(*lease);  // nobody has seen it
      plan_unread_ = true;
      break;
    }
    Result<plan::PlannedWork> work = of_.plan.Work(of_.journal.state(), lease->id);
    if (!work.ok()) {
      of_.availability.End(*lease);
      of_.ending.Conclude(job::FailedFor("LedgerUnreadable", work.error().message));
      break;
    }
    of_.attempts.NoteLastChance(lease->id);
    works.push_back(std::move(work->work));
    bytes += works.back().size();
    waiting.reply.leased.push_back({lease->id, lease->fence, work->digest, works.back()});
    lease.reset();
  }
  if (plan_unread_ && works.empty() && !Concerns(waiting, now)) return false;
  waiting.reply.epoch = of_.journal.epoch();
  waiting.reply.directive = what;
  if (what == job::Directive::kClose) of_.ending.closing().Told(waiting.node, waiting.incarnation);
  if (what == job::Directive::kWhere) {
    of_.standstill.Asked(waiting.node, waiting.incarnation);
    of_.init_watch.Asked(waiting.node);
  }
  waiting.answer(waiting.reply);
  return true;
}

void Answers::Close(const Error& why) {
  for (const auto& [exchange, waiter] : waiters_.TakeAll()) waiter.answer(why);
}

std::string Answers::Check(Instant now) const {
  if (!of_.newest.Fresh(now) || of_.ending.phase() == Ending::Phase::kDeciding) return "";
  for (const auto& [exchange, waiting] : waiters_.all()) {
    if (waiting.position > waiters_.durable()) continue;
    if (!Concerns(waiting, now) && Grants(waiting, now) == 0) continue;
    return fmt::format("exchange {} of node {} waits for nothing", exchange, waiting.node);
  }
  return "";
}

}  // namespace parallelrun::coordinator
