#include <spdlog/fmt/fmt.h>

#include <utility>

#include "agent/core/agent_core.h"
#include "agent/processes/frames.h"

// The processes' side of AgentCore: hand-out, answers, time-outs, deaths.

namespace parallelrun {
namespace {

constexpr Duration kLook = milliseconds(100);      // between looks at the status pages
constexpr Duration kRefusedGrace = seconds(1);     // a short run() ends by itself; init() is dear
constexpr Duration kExitGrace = seconds(5);        // after "init failed"
constexpr Duration kReportWait = milliseconds(3);  // for company, when answers come fast
constexpr double kFastMicros = 1000;

}  // namespace

std::string ProcessName(uint32_t number) { return fmt::format("process{:03}", number); }

std::string AgentCore::StderrLog(uint32_t process) const {
  return fmt::format("user/stderr/{}/{}.stderr.txt", options_.node, ProcessName(process));
}

std::string AgentCore::ErrorLog(uint32_t process) const {
  return fmt::format("user/error/{}/{}.txt", options_.node, ProcessName(process));
}

void AgentCore::TakeActions(std::vector<WorkerAction>& actions) {
  actions.clear();
  actions.swap(actions_);
}

void AgentCore::TakeNotes(std::vector<MiniBatchNote>& notes) {
  notes.clear();
  notes.swap(notes_);
}

void AgentCore::Step(Instant now) {
  if (now >= check_at_) {
    check_at_ = now + kLook;
    CheckProcesses(now);
    stalled_ = Stalled(now);
  }
  const bool room = HasRoom(now);
  if (end_ == AgentEnd::kNone && room) {
    if (stalled_) ReturnWaiting(now);
    if (registered_) StartMissing(now);
    Dispatch(now);
  } else if (end_ == AgentEnd::kNone) {
    ReturnQueued(now);
  }
  if (!std::exchange(had_room_, room) && room) Due(now);  // the parked request wants nothing
  if (end_ != AgentEnd::kNone) {
    EndProcesses(now);
    CheckDone(now);
  }
  const bool look = given_ > 0 || end_ != AgentEnd::kNone;
  step_wake_ = look ? check_at_ : kNever;
  if (now < short_until_) step_wake_ = std::min(step_wake_, short_until_);
  for (const auto& [number, process] : processes_) {
    step_wake_ = std::min(step_wake_, std::max(process.stop_deadline, check_at_));
  }
}

void AgentCore::StartMissing(Instant now) {
  const uint32_t limit = 3 * registration_.processes;
  const bool tried_enough = init_failures_ >= limit || idle_deaths_ >= limit;
  if (tried_enough) {
    if (!processes_.empty()) return;
    const std::string message = fmt::format(
        "no worker process could be kept running: {} in a row failed while starting, or ended "
        "before their first mini-batch",
        std::max(init_failures_, idle_deaths_));
    AddEvent(0, ProcessEvent::Kind::kGaveUp, message, "");
    return End(AgentEnd::kGaveUp, options_.drain_grace, message, now);
  }
  while (processes_.size() < registration_.processes) {
    if (next_process_ == process_end_) {
      must_register_ = true;  // for another range of names
      return;
    }
    const uint32_t number = next_process_++;
    // As where two epochs granted the same names, since the later one could not know the earlier.
    if (!processes_.try_emplace(number).second) continue;
    actions_.push_back({WorkerAction::Kind::kStart, number, 0, {}});
  }
}

// Of several mini-batches in flight, nobody can tell which one killed the process: those that were
// there at a death are tried one at a time.
bool AgentCore::MayTake(const Process& process, const Batch& batch, uint32_t depth) const {
  if (process.state != ProcessState::kReady || process.late) return false;
  if (process.given.size() >= depth) return false;
  if (!registration_.async || process.given.empty()) return true;
  return batch.bounces == 0 && leases_.at(process.given.front().key).bounces == 0;
}

void AgentCore::Dispatch(Instant now) {
  if (kept_bytes_ > kMaxKeptBytes) return;
  const uint32_t depth = registration_.async ? kAsyncDepth : pace_.Depth();
  while (!queue_.empty()) {
    const Key key = queue_.front();
    Batch* batch = Find(key);
    if (batch == nullptr || batch->state != State::kQueued) {
      queue_.pop_front();
      continue;
    }
    if (Over(*batch, now)) return;  // until it is renewed
    // What came late with an answer of an earlier epoch may be with another node by now.
    if (batch->offered && !registration_.speculation) return;  // until it is adopted
    uint32_t number = 0;
    Process* least = nullptr;
    for (auto& [n, process] : processes_) {
      if (!MayTake(process, *batch, depth)) continue;
      if (least != nullptr && process.given.size() >= least->given.size()) continue;
      least = &process;
      number = n;
    }
    if (least == nullptr) return;
    queue_.pop_front();
    if (least->given.empty()) least->busy_since = now;
    least->given.push_back({++sequence_, key, now});
    ++given_;
    batch->state = State::kGiven;
    batch->process = number;
    actions_.push_back({WorkerAction::Kind::kGive, number, sequence_, batch->work});
  }
}

bool AgentCore::OnReady(uint32_t number, Instant) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return false;
  if (it->second.state == ProcessState::kKilled) return true;
  if (it->second.state != ProcessState::kStarting) return false;
  it->second.state = ProcessState::kReady;
  init_failures_ = 0;
  AddEvent(number, ProcessEvent::Kind::kReady, "", "");
  return true;
}

void AgentCore::OnInitRanOut(uint32_t number, std::string message, Instant now) {
  const auto it = processes_.find(number);
  if (it == processes_.end() || it->second.state != ProcessState::kStarting) return;
  it->second.state = ProcessState::kStopping;
  it->second.stop_deadline = now + kExitGrace;
  RanOut(std::move(message), now);
}

void AgentCore::OnInitFailed(uint32_t number, std::string message, bool fatal, Instant now) {
  const auto it = processes_.find(number);
  if (it == processes_.end() || it->second.state != ProcessState::kStarting) return;
  if (!fatal && !no_room_.empty()) return OnInitRanOut(number, std::move(message), now);
  it->second.state = ProcessState::kStopping;
  it->second.stop_deadline = now + kExitGrace;
  ++init_failures_;
  if (!fatal) {
    return AddEvent(number, ProcessEvent::Kind::kInitFailed, std::move(message), ErrorLog(number));
  }
  if (end_ != AgentEnd::kNone) return;
  AddEvent(number, ProcessEvent::Kind::kScriptUnusable, message, ErrorLog(number));
  End(AgentEnd::kGaveUp, options_.drain_grace, std::move(message), now);
}

void AgentCore::OnStatus(uint32_t number, const StatusReading& reading) {
  const auto it = processes_.find(number);
  if (it != processes_.end()) it->second.status = reading;
}

// In the order in which they were given, but for a script that keeps several in flight.
std::deque<AgentCore::Given>::iterator AgentCore::Answerable(Process& process, uint64_t sequence) {
  const auto end = registration_.async || process.given.empty() ? process.given.end()
                                                                : process.given.begin() + 1;
  const auto it = std::find_if(process.given.begin(), end, [sequence](const Given& given) {
    return given.sequence == sequence;
  });
  return it == end ? process.given.end() : it;
}

bool AgentCore::OnRows(uint32_t number, uint64_t sequence, std::string_view rows) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return false;
  const auto given = Answerable(it->second, sequence);
  if (given == it->second.given.end()) return false;
  leases_.at(given->key).rows.append(rows);
  kept_bytes_ += rows.size();
  return true;
}

AgentCore::Batch* AgentCore::TakeAnswered(uint32_t number, uint64_t sequence, Instant now,
                                          Key& key) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return nullptr;
  Process& process = it->second;
  const auto given = Answerable(process, sequence);
  if (given == process.given.end()) return nullptr;
  key = given->key;
  Batch& batch = leases_.at(key);
  const Duration elapsed = now - (registration_.async ? given->since : process.busy_since);
  batch.elapsed_ns = static_cast<uint64_t>(std::max<int64_t>(elapsed.count(), 0)) * 1000;
  process.given.erase(given);
  --given_;
  pace_.Add(now - process.busy_since, now);
  process.busy_since = now;
  process.answered = true;
  process.late = false;
  idle_deaths_ = 0;
  return &batch;
}

// Lines that end, as many as it says at least: in the output others stand before and behind them.
bool AgentCore::WholeRows(uint32_t number, const ResultAnswer& answer) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return false;
  const auto given = Answerable(it->second, answer.sequence);
  if (given == it->second.given.end()) return false;
  const std::string& parts = leases_.at(given->key).rows;
  const std::string_view last = answer.rows.empty() ? std::string_view(parts) : answer.rows;
  if (!registration_.append_row) return last.empty();
  if (!last.empty() && last.back() != '\n') return false;
  size_t ends = 0;
  for (const std::string_view rows : {std::string_view(parts), answer.rows}) {
    ends += static_cast<size_t>(std::count(rows.begin(), rows.end(), '\n'));
    if (answer.row_count <= ends) return true;
  }
  return false;
}

bool AgentCore::OnResult(uint32_t number, const ResultAnswer& answer, Instant now) {
  if (!WholeRows(number, answer)) return false;
  Key key = 0;
  Batch* batch = TakeAnswered(number, answer.sequence, now, key);
  if (batch == nullptr) return false;
  if (batch->refused) return Forget(key), true;
  batch->rows.append(answer.rows);
  kept_bytes_ += answer.rows.size();
  batch->run_ns = answer.run_ns;
  batch->cpu_ns = answer.cpu_ns;
  batch->items_succeeded = answer.items_succeeded;
  batch->items_skipped = answer.items_skipped;
  batch->row_count = answer.row_count;
  Finish(key, *batch, Finished::Kind::kSucceeded, now);
  short_wait_ = Duration(0);
  if (!std::exchange(ran_out_, {}).empty()) AddEvent(0, ProcessEvent::Kind::kRanOut, "", "");
  return true;
}

bool AgentCore::OnFailed(uint32_t number, FailedAnswer answer, Instant now) {
  Key key = 0;
  Batch* batch = TakeAnswered(number, answer.sequence, now, key);
  if (batch == nullptr) return false;
  if (batch->refused) return Forget(key), true;
  if (answer.kind == kNoSpaceKind || !no_room_.empty()) {
    RanOut(std::move(answer.message), now);
    kept_bytes_ -= batch->rows.size();
    batch->rows = {};
    Finish(key, *batch, Finished::Kind::kReturned, now);
    return true;
  }
  if (answer.log.empty()) answer.log = ErrorLog(number);
  FinishFailed(key, *batch, std::move(answer), now);
  return true;
}

void AgentCore::FinishFailed(Key key, Batch& batch, FailedAnswer answer, Instant now) {
  kept_bytes_ -= batch.rows.size();
  batch.rows = {};
  batch.run_ns = answer.run_ns;
  batch.cpu_ns = answer.cpu_ns;
  batch.cause = answer.cause;
  batch.error_kind = std::move(answer.kind);
  batch.message = std::move(answer.message);
  batch.log = std::move(answer.log);
  batch.output = answer.output;
  Finish(key, batch, Finished::Kind::kFailed, now);
}

void AgentCore::Finish(Key key, Batch& batch, Finished::Kind kind, Instant now) {
  --unfinished_;
  batch.state = State::kFinished;
  batch.kind = kind;
  if (kind != Finished::Kind::kReturned) {
    batch.elapsed_ns = std::max(batch.elapsed_ns, batch.run_ns);
    if (notes_.size() < kMaxNotes) {
      notes_.push_back({batch.process, batch.name.id, ItemsOfWork(batch.work),
                        batch.items_succeeded, batch.elapsed_ns, batch.cpu_ns, batch.run_ns,
                        batch.error_kind, batch.items_skipped});
    }
  }
  batch.work = {};
  if (batch.offered) {
    // Not this incarnation's yet: reported once it is adopted. What has not begun is just let go.
    if (kind == Finished::Kind::kReturned) Forget(key);
    return;
  }
  unreported_.push_back(key);
  const bool fast = pace_.known() && pace_.MeanMicros() < kFastMicros && given_ > 0;
  Due(fast ? now + kReportWait : now);
}

void AgentCore::Kill(uint32_t number, Process& process) {
  if (process.state == ProcessState::kKilled) return;
  process.state = ProcessState::kKilled;
  process.stop_deadline = kNever;
  actions_.push_back({WorkerAction::Kind::kKill, number, 0, {}, process.kill_message});
}

void AgentCore::CheckProcesses(Instant now) {
  for (auto& [number, process] : processes_) {
    if (now >= process.stop_deadline) Kill(number, process);
    if (process.state != ProcessState::kReady) continue;
    if (HasOver(process, now)) {
      Kill(number, process);
    } else if (registration_.async) {
      CheckFlight(number, process, now);
    } else {
      CheckMiniBatch(number, process, now);
      CheckLate(number, process, now);
    }
  }
}

bool AgentCore::HasOver(const Process& process, Instant now) const {
  if (registration_.speculation) return false;
  return std::any_of(process.given.begin(), process.given.end(),
                     [&](const Given& given) { return Over(leases_.at(given.key), now); });
}

// The status page knows one mini-batch at a time, so several in flight have one limit each, from
// their hand-out on. A refused one goes on until then: ending it would end the others too.
void AgentCore::CheckFlight(uint32_t number, Process& process, Instant now) {
  const Duration limit = registration_.run_timeout;
  const auto late = std::find_if(process.given.begin(), process.given.end(),
                                 [&](const Given& given) { return now - given.since > limit; });
  if (late == process.given.end()) return;
  process.kill_sequence = late->sequence;
  process.kill_run_ns = static_cast<uint64_t>((now - late->since).count()) * 1000;
  process.kill_cause = Cause::kRunTimeout;
  process.kill_message = fmt::format(
      "no result came within {} (runInvocationTimeoutSeconds) of handing the mini-batch to the "
      "asynchronous script; {} was killed",
      HumanDuration(limit), ProcessName(number));
  Kill(number, process);
}

// It is at none of what it was given, so none is to blame: they run again elsewhere.
void AgentCore::CheckBegins(uint32_t number, Process& process, Instant now) {
  if (process.given.empty()) return;
  const Instant since =
      std::max({process.given.front().since, process.busy_since, process.status.since});
  if (now - since <= registration_.overhead_timeout) return;
  // One that never began with any ended before its first: a job must not go on like this for ever.
  if (!process.answered) ++idle_deaths_;
  process.kill_message = fmt::format(
      "{} was killed: it held {} mini-batches and began with none of them within {} "
      "(taskOverheadTimeoutSeconds). They run again, without a failed attempt. Most likely a "
      "thread that {} left behind keeps the interpreter, or something stopped the process",
      ProcessName(number), process.given.size(), HumanDuration(registration_.overhead_timeout),
      process.answered ? "run()" : "init()");
  Kill(number, process);
}

void AgentCore::CheckMiniBatch(uint32_t number, Process& process, Instant now) {
  const StatusReading& status = process.status;
  const auto on_it =
      std::find_if(process.given.begin(), process.given.end(), [&status](const Given& given) {
        return status.Working() && given.sequence == status.sequence;
      });
  if (on_it == process.given.end()) return CheckBegins(number, process, now);
  const Duration elapsed = now - status.since;
  const Batch& batch = leases_.at(on_it->key);
  if (batch.refused) {
    const Duration grace = registration_.speculation ? kRefusedGrace : Duration(0);
    if (now - std::max(batch.refused_at, status.since) >= grace) Kill(number, process);
    return;
  }
  const bool running = status.phase == Phase::kRun;
  const Duration limit = running ? registration_.run_timeout : registration_.overhead_timeout;
  if (elapsed <= limit) return;
  process.kill_sequence = status.sequence;
  process.kill_run_ns = running ? static_cast<uint64_t>(elapsed.count()) * 1000 : 0;
  if (running) {
    process.kill_cause = Cause::kRunTimeout;
    process.kill_message =
        fmt::format("run() took longer than {} (runInvocationTimeoutSeconds); {} was killed",
                    HumanDuration(limit), ProcessName(number));
  } else {
    process.kill_cause = Cause::kOverheadTimeout;
    process.kill_message =
        fmt::format("{} took longer than {} (taskOverheadTimeoutSeconds); {} was killed",
                    status.phase == Phase::kLoading ? "loading the mini-batch"
                                                    : "turning what run() returned into rows",
                    HumanDuration(limit), ProcessName(number));
  }
  Kill(number, process);
}

}  // namespace parallelrun
