#include "agent/core/processes.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace parallelrun::agent {

std::string ProcessName(uint32_t number) { return fmt::format("process{:03}", number); }

namespace {

constexpr Duration kExitGrace = seconds(5);      // after "init failed"
constexpr Duration kStoppedGrace = seconds(30);  // after shutdown(), for what runs at exit
constexpr Duration kRefusedGrace = seconds(1);   // a short run() ends by itself; init() is dear

}  // namespace

bool Processes::Start(uint32_t number) {
  if (!processes_.try_emplace(number).second) return false;
  actions_.push_back({WorkerAction::Kind::kStart, number, 0, {}});
  return true;
}

ProcessState Processes::StateOf(uint32_t number) const {
  const auto it = processes_.find(number);
  return it == processes_.end() ? ProcessState::kGone : it->second.state;
}

void Processes::StartFailed(uint32_t number, Instant now) {
  Process& process = processes_.at(number);
  process.state = ProcessState::kStopping;
  process.stop_by = now + kExitGrace;
}

void Processes::Stopped(uint32_t number, Instant now) {
  Process& process = processes_.at(number);
  process.asked.reset();  // whatever ends it now cuts no shutdown() off
  process.stop_by = std::min(process.stop_by, now + kStoppedGrace);
}

void Processes::Status(uint32_t number, const StatusReading& page) {
  const auto it = processes_.find(number);
  if (it != processes_.end()) it->second.page = page;
}

// The page may name one that was answered already, or none.
Processes::GivenAt Processes::AtWork(const Process& process) const {
  const StatusReading& page = process.page;
  if (!page.Working()) return process.given.end();
  return std::find_if(process.given.begin(), process.given.end(),
                      [&page](const Given& one) { return one.sequence == page.sequence; });
}

Ended Processes::Exited(uint32_t number, bool no_room, Instant now) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return {};
  const Process& process = it->second;
  const std::deque<Given>& given = process.given;
  Ended ended{
      process.state, !process.answered && given.empty(), process.killed_for, process.cut_off, {}};
  Death death;
  death.by_agent = process.state == ProcessState::kKilled;
  death.timed_out = process.killed_for.sequence;
  death.no_room = no_room;
  death.async = terms_.async;
  death.at_work = AtWork(process) != given.end();
  death.begun = process.page.sequence;
  death.first = given.empty() ? 0 : given.front().sequence;
  death.held = given.size();
  const Duration ran = process.page.phase == Phase::kRun ? now - process.page.since : Duration(0);
  for (auto one = given.rbegin(); one != given.rend(); ++one) {
    const Fault fault = ToBlame(death, {one->sequence, one->bounces});
    ended.orphans.push_back({one->key, fault, one->bounces + (fault == Fault::kBounced ? 1 : 0),
                             now - (terms_.async ? one->since : process.busy_since), ran,
                             death.at_work && one->sequence == death.begun});
  }
  // The last first: each that is given again is put in front, so they keep their order.
  given_ -= given.size();
  processes_.erase(it);
  return ended;
}

// Of several mini-batches in flight, nobody can tell which one killed the process: those that were
// there at a death are tried one at a time.
bool Processes::MayTake(const Process& process, uint32_t depth, uint32_t bounces) const {
  if (process.state != ProcessState::kReady || process.late) return false;
  if (process.given.size() >= depth) return false;
  if (!terms_.async || process.given.empty()) return true;
  return bounces == 0 && process.given.front().bounces == 0;
}

std::optional<uint32_t> Processes::Idlest(uint32_t depth, uint32_t bounces) const {
  std::optional<uint32_t> idlest;
  size_t least = 0;
  for (const auto& [number, process] : processes_) {
    if (!MayTake(process, depth, bounces)) continue;
    if (idlest && process.given.size() >= least) continue;
    idlest = number;
    least = process.given.size();
  }
  return idlest;
}

void Processes::Give(uint32_t number, Key key, uint32_t bounces, std::string_view work,
                     Instant now) {
  Process& process = processes_.at(number);
  if (process.given.empty()) process.busy_since = now;
  process.given.push_back({++sequence_, key, now, bounces, std::nullopt});
  ++given_;
  actions_.push_back({WorkerAction::Kind::kGive, number, sequence_, work});
}

// In the order in which they were given, but for a script that keeps several in flight.
Processes::GivenAt Processes::FindAnswerable(const Process& process, uint64_t sequence) const {
  const auto begin = process.given.begin();
  const auto end = terms_.async || process.given.empty() ? process.given.end() : begin + 1;
  const auto it =
      std::find_if(begin, end, [sequence](const Given& one) { return one.sequence == sequence; });
  return it == end ? process.given.end() : it;
}

std::optional<Key> Processes::Answerable(uint32_t number, uint64_t sequence) const {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return std::nullopt;
  const auto one = FindAnswerable(it->second, sequence);
  if (one == it->second.given.end()) return std::nullopt;
  return one->key;
}

Answered Processes::Answer(uint32_t number, uint64_t sequence, Instant now) {
  Process& process = processes_.at(number);
  const auto one = FindAnswerable(process, sequence);
  const Answered answered{one->key, now - (terms_.async ? one->since : process.busy_since),
                          now - process.busy_since};
  process.given.erase(one);
  --given_;
  process.busy_since = now;
  process.answered = true;
  process.late = false;
  return answered;
}

bool Processes::PassedOver(uint32_t number, uint64_t sequence, std::optional<Key>& key) {
  const auto it = processes_.find(number);
  if (it == processes_.end() || sequence > it->second.taken_back) return false;
  std::deque<Given>& given = it->second.given;
  if (given.empty() || given.front().sequence > sequence) return true;  // it is taken back already
  if (given.front().sequence != sequence) return false;
  key = given.front().key;
  given.pop_front();
  --given_;
  return true;
}

void Processes::Refused(uint32_t number, Key key, Instant now) {
  for (Given& one : processes_.at(number).given) {
    if (one.key == key) one.refused = now;
  }
}

Checked Processes::Check(Instant now, Duration much, const Over& over) {
  Checked checked;
  for (auto& [number, process] : processes_) {
    if (now >= process.stop_by) {
      if (process.asked) process.cut_off = now - *process.asked;
      Kill(number, process);
    }
    if (process.state != ProcessState::kReady) continue;
    const bool any_over = std::any_of(process.given.begin(), process.given.end(),
                                      [&](const Given& one) { return over(one.key, now); });
    if (any_over) {
      Kill(number, process);
      continue;
    }
    CheckTimes(number, process, now, over, checked);
    if (!terms_.async) CheckLate(number, process, now, much, checked);
  }
  return checked;
}

void Processes::CheckTimes(uint32_t number, Process& process, Instant now, const Over& over,
                           Checked& checked) {
  const StatusReading& page = process.page;
  // Where another node may be in run() of what it holds, it ends in time, with its stack or
  // without.
  const bool stack =
      page.phase != Phase::kStarting &&
      std::none_of(process.given.begin(), process.given.end(),
                   [&](const Given& one) { return over(one.key, now + kStackWait); });
  if (terms_.async) {
    // A refused one goes on until its time is over: ending it would end the others too.
    for (const Given& one : process.given) {
      KillFor(number, process, OverdueInFlight(number, one.sequence, one.since, terms_, now),
              stack);
    }
    return;
  }
  const auto at = AtWork(process);
  if (at == process.given.end()) {
    const Instant front = process.given.empty() ? now : process.given.front().since;
    KillFor(
        number, process,
        OverdueToBegin({number, process.given.size(), front, process.busy_since, process.answered},
                       page, terms_, now),
        stack);
    // One that never began with any ended before its first: a job must not go on like this for
    // ever.
    if (process.state == ProcessState::kKilled && !process.answered) ++checked.never_began;
    return;
  }
  // Its result is of no use. Where another node may be in run() of it, it ends at once. Else it
  // is not ended for that where it has gathered what its shutdown() is to write.
  const bool gathers = process.owes && process.answered && terms_.speculation;
  if (at->refused && !gathers) {
    const Duration grace = terms_.speculation ? kRefusedGrace : Duration(0);
    if (now - std::max(*at->refused, page.since) >= grace) Kill(number, process);
    return;
  }
  KillFor(number, process, OverdueAtWork(number, page, terms_, now), stack);
}

// Short mini-batches are sent ahead. When one of them turns out long, those behind it are taken
// back: first the process is told, then, when it must know, they are as if they had never been sent
// (docs/worker-protocol.md, "Taking back"). Were they left there, the process next to it could be
// idle for as long as the long one takes.
void Processes::CheckLate(uint32_t number, Process& process, Instant now, Duration much,
                          Checked& checked) {
  const StatusReading& page = process.page;
  std::deque<Given>& given = process.given;
  for (size_t i = given.size(); i-- > 0;) {
    const bool begun = given[i].sequence <= page.sequence;
    if (begun || given[i].sequence > page.taken_back) continue;
    checked.taken_back.push_back(given[i].key);
    given.erase(given.begin() + static_cast<std::ptrdiff_t>(i));
    --given_;
  }
  process.late = AtWork(process) != given.end() && now - page.since > much;
  if (!process.late || given.back().sequence <= std::max(page.sequence, process.taken_back)) {
    return;
  }
  process.taken_back = given.back().sequence;
  actions_.push_back({WorkerAction::Kind::kTakeBack, number, process.taken_back, {}});
}

std::vector<std::pair<Key, bool>> Processes::Begun() const {
  std::vector<std::pair<Key, bool>> all;
  all.reserve(given_);
  for (const auto& [number, process] : processes_) {
    const StatusReading& page = process.page;
    for (const Given& one : process.given) {
      // In async mode the page tells of the oldest one in flight only.
      const bool begun = one.sequence < page.sequence ||
                         (one.sequence == page.sequence && page.phase >= Phase::kRun) ||
                         (terms_.async && page.Working());
      all.emplace_back(one.key, begun);
    }
  }
  return all;
}

void Processes::KillFor(uint32_t number, Process& process, std::optional<Overdue> overdue,
                        bool stack) {
  if (!overdue || process.state == ProcessState::kKilled) return;
  process.killed_for = *std::move(overdue);
  Kill(number, process, stack);
}

void Processes::Kill(uint32_t number, Process& process, bool stack) {
  if (process.state == ProcessState::kKilled) return;
  process.state = ProcessState::kKilled;
  process.stop_by = kNever;
  actions_.push_back({WorkerAction::Kind::kKill, number, 0, {}, process.killed_for.message, stack});
}

void Processes::KillAll() {
  for (auto& [number, process] : processes_) Kill(number, process);
}

void Processes::EndAll(bool late, Instant stop_by, Instant hung, Instant now) {
  for (auto& [number, process] : processes_) {
    const StatusReading& page = process.page;
    const bool stack = page.phase != Phase::kStarting && page.since < hung;
    if (process.state == ProcessState::kStarting) {
      Kill(number, process, stack);
    } else if (process.state == ProcessState::kReady && !process.given.empty()) {
      if (late) Kill(number, process, stack);
    } else if (process.state == ProcessState::kReady) {
      process.stop_by = stop_by;
      process.asked = now;
      process.state = ProcessState::kStopping;
      actions_.push_back({WorkerAction::Kind::kStop, number, 0, {}});
    } else if (process.state == ProcessState::kStopping) {
      process.stop_by = std::min(process.stop_by, stop_by);
    }
  }
}

void Processes::TellHeader(std::string_view header) {
  header_ = header;
  for (auto& [number, process] : processes_) {
    if (!std::exchange(process.awaits_header, false)) continue;
    if (process.state == ProcessState::kKilled) continue;
    actions_.push_back({WorkerAction::Kind::kHeader, number, 0, header_});
  }
}

// Before init() nothing listens: the signal would end it.
void Processes::AskWhere() {
  for (const auto& [number, process] : processes_) {
    const StatusReading& page = process.page;
    if (process.state == ProcessState::kKilled) continue;
    if (!page.Working() && page.phase != Phase::kInit) continue;
    actions_.push_back({WorkerAction::Kind::kWhere, number, 0, {}});
  }
}

void Processes::TakeActions(std::vector<WorkerAction>& actions) {
  actions.clear();
  actions.swap(actions_);
}

uint32_t Processes::ready() const {
  return static_cast<uint32_t>(std::count_if(
      processes_.begin(), processes_.end(),
      [](const auto& process) { return process.second.state == ProcessState::kReady; }));
}

uint32_t Processes::late() const {
  return static_cast<uint32_t>(
      std::count_if(processes_.begin(), processes_.end(), [](const auto& process) {
        return process.second.state == ProcessState::kReady && process.second.late;
      }));
}

bool Processes::AnyIdle() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& process) {
    return process.second.state == ProcessState::kReady && process.second.given.empty();
  });
}

bool Processes::AllBusyFor(Duration time, Instant now) const {
  bool busy = false;
  for (const auto& [number, process] : processes_) {
    if (process.state != ProcessState::kReady) continue;
    if (process.given.empty() || now - process.busy_since < time) return false;
    busy = true;
  }
  return busy;
}

bool Processes::KilledAtWork() const {
  return std::any_of(processes_.begin(), processes_.end(), [](const auto& process) {
    return process.second.state == ProcessState::kKilled && !process.second.given.empty();
  });
}

Instant Processes::NextDeadline() const {
  Instant next = kNever;
  for (const auto& [number, process] : processes_) next = std::min(next, process.stop_by);
  return next;
}

}  // namespace parallelrun::agent
