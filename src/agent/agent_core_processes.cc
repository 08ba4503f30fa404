#include <spdlog/fmt/fmt.h>

#include <utility>

#include "agent/agent_core.h"

// The processes' side of AgentCore: hand-out, answers, time-outs, deaths.

namespace parallelrun {
namespace {

constexpr Duration kLook = milliseconds(100);      // between looks at the status pages
constexpr Duration kRefusedGrace = seconds(1);     // a short run() ends by itself; init() is dear
constexpr Duration kExitGrace = seconds(5);        // after "init failed"
constexpr Duration kReportWait = milliseconds(3);  // for company, when answers come fast
constexpr double kFastMicros = 1000;
constexpr uint32_t kMaxBounces = 3;

}  // namespace

std::string ProcessName(uint32_t number) { return fmt::format("process{:03}", number); }

std::string AgentCore::StderrLog(uint32_t process) const {
  return fmt::format("user/stderr/{}/{}.stderr.txt", options_.node, ProcessName(process));
}

std::string AgentCore::ErrorLog(uint32_t process) const {
  return fmt::format("user/error/{}/{}.txt", options_.node, ProcessName(process));
}

void AgentCore::TakeActions(std::vector<Action>& actions) {
  actions.clear();
  actions.swap(actions_);
}

void AgentCore::Step(Instant now) {
  if (now >= check_at_) {
    check_at_ = now + kLook;
    CheckProcesses(now);
  }
  if (end_ == AgentEnd::kNone) {
    if (registered_) StartMissing(now);
    Dispatch(now);
  }
  if (end_ != AgentEnd::kNone) {
    EndProcesses(now);
    CheckDone(now);
  }
  const bool look = given_ > 0 || end_ != AgentEnd::kNone;
  step_wake_ = look ? check_at_ : kNever;
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
  for (uint32_t slot = 0; processes_.size() < registration_.processes; ++slot) {
    const auto in_slot = [slot](const auto& entry) { return entry.second.slot == slot; };
    if (std::any_of(processes_.begin(), processes_.end(), in_slot)) continue;
    if (next_process_ == process_end_) {
      must_register_ = true;  // for another range of names
      return;
    }
    const uint32_t number = next_process_++;
    processes_[number].slot = slot;
    actions_.push_back({Action::Kind::kStart, number, slot, 0, {}});
  }
}

void AgentCore::Dispatch(Instant now) {
  if (kept_bytes_ > kMaxKeptBytes) return;
  const uint32_t depth = pace_.Depth();
  while (!queue_.empty()) {
    const Key key = queue_.front();
    Batch* batch = Find(key);
    if (batch == nullptr || batch->state != State::kQueued) {
      queue_.pop_front();
      continue;
    }
    uint32_t number = 0;
    Process* least = nullptr;
    for (auto& [n, process] : processes_) {
      if (process.state != ProcessState::kReady || process.given.size() >= depth) continue;
      if (least != nullptr && process.given.size() >= least->given.size()) continue;
      least = &process;
      number = n;
    }
    if (least == nullptr) return;
    queue_.pop_front();
    if (least->given.empty()) least->busy_since = now;
    least->given.push_back({++sequence_, key});
    ++given_;
    batch->state = State::kGiven;
    batch->process = number;
    actions_.push_back({Action::Kind::kGive, number, 0, sequence_, batch->work});
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

void AgentCore::OnInitFailed(uint32_t number, std::string message, bool fatal, Instant now) {
  const auto it = processes_.find(number);
  if (it == processes_.end() || it->second.state != ProcessState::kStarting) return;
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

bool AgentCore::OnRows(uint32_t number, uint64_t sequence, std::string_view rows) {
  const auto it = processes_.find(number);
  if (it == processes_.end() || it->second.given.empty()) return false;
  const Given& front = it->second.given.front();
  if (front.sequence != sequence) return false;
  leases_.at(front.key).rows.append(rows);
  kept_bytes_ += rows.size();
  return true;
}

// Mini-batches are answered in the order in which they were given.
bool AgentCore::TakeAnswered(uint32_t number, uint64_t sequence, Instant now, Key& key) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return false;
  Process& process = it->second;
  if (process.given.empty() || process.given.front().sequence != sequence) return false;
  key = process.given.front().key;
  process.given.pop_front();
  --given_;
  pace_.Add(now - process.busy_since, now);
  process.busy_since = now;
  process.answered = true;
  idle_deaths_ = 0;
  return true;
}

bool AgentCore::OnResult(uint32_t number, const ResultAnswer& answer, Instant now) {
  Key key = 0;
  if (!TakeAnswered(number, answer.sequence, now, key)) return false;
  Batch& batch = leases_.at(key);
  if (batch.refused) return Forget(key), true;
  batch.rows.append(answer.rows);
  kept_bytes_ += answer.rows.size();
  batch.run_ns = answer.run_ns;
  batch.items_succeeded = answer.items_succeeded;
  batch.row_count = answer.row_count;
  Finish(key, batch, Finished::Kind::kSucceeded, now);
  return true;
}

bool AgentCore::OnFailed(uint32_t number, FailedAnswer answer, Instant now) {
  Key key = 0;
  if (!TakeAnswered(number, answer.sequence, now, key)) return false;
  Batch& batch = leases_.at(key);
  if (batch.refused) return Forget(key), true;
  if (answer.log.empty()) answer.log = ErrorLog(number);
  FinishFailed(key, batch, std::move(answer), now);
  return true;
}

void AgentCore::FinishFailed(Key key, Batch& batch, FailedAnswer answer, Instant now) {
  kept_bytes_ -= batch.rows.size();
  batch.rows = {};
  batch.run_ns = answer.run_ns;
  batch.cause = answer.cause;
  batch.error_kind = std::move(answer.kind);
  batch.message = std::move(answer.message);
  batch.log = std::move(answer.log);
  Finish(key, batch, Finished::Kind::kFailed, now);
}

void AgentCore::Finish(Key key, Batch& batch, Finished::Kind kind, Instant now) {
  --unfinished_;
  batch.state = State::kFinished;
  batch.kind = kind;
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
  actions_.push_back({Action::Kind::kKill, number, 0, 0, {}});
}

void AgentCore::CheckProcesses(Instant now) {
  for (auto& [number, process] : processes_) {
    if (now >= process.stop_deadline) Kill(number, process);
    if (process.state == ProcessState::kReady && process.status.Working()) {
      CheckMiniBatch(number, process, now);
    }
  }
}

void AgentCore::CheckMiniBatch(uint32_t number, Process& process, Instant now) {
  const StatusReading& status = process.status;
  const auto on_it =
      std::find_if(process.given.begin(), process.given.end(),
                   [&status](const Given& given) { return given.sequence == status.sequence; });
  if (on_it == process.given.end()) return;  // its answer is here already
  const Duration elapsed = now - status.since;
  const Batch& batch = leases_.at(on_it->key);
  if (batch.refused) {
    if (now - std::max(batch.refused_at, status.since) >= kRefusedGrace) Kill(number, process);
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

void AgentCore::OnExited(uint32_t number, const std::string& words, Instant now) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return;
  Process& process = it->second;
  if (process.state == ProcessState::kStarting) {
    ++init_failures_;
    AddEvent(number, ProcessEvent::Kind::kInitFailed, "while it was starting, it " + words,
             StderrLog(number));
  } else if (process.state == ProcessState::kReady) {
    if (!process.answered && process.given.empty()) ++idle_deaths_;
    AddEvent(number, ProcessEvent::Kind::kExited, words, StderrLog(number));
  }
  HandBack(number, process, words, now);
  processes_.erase(it);
}

// Only the mini-batch that the process worked on can be to blame, and only if the process was not
// killed for another reason. The others run elsewhere.
void AgentCore::HandBack(uint32_t number, Process& process, const std::string& words, Instant now) {
  const StatusReading& status = process.status;
  const bool by_itself = process.state != ProcessState::kKilled;
  bool blamed = false;
  for (auto given = process.given.rbegin(); given != process.given.rend(); ++given) {
    --given_;
    Batch& batch = leases_.at(given->key);
    if (batch.refused) {
      Forget(given->key);
      continue;
    }
    const bool working = status.Working() && status.sequence == given->sequence;
    const bool timed_out = working && process.kill_sequence == given->sequence;
    const bool in_front = given + 1 == process.given.rend();
    const bool bounced =
        by_itself && in_front && !blamed && !working && ++batch.bounces >= kMaxBounces;
    if (timed_out) {
      const char* kind =
          process.kill_cause == Cause::kRunTimeout ? "RunTimeout" : "OverheadTimeout";
      FinishFailed(given->key, batch,
                   {0, process.kill_run_ns, process.kill_cause, kind, process.kill_message,
                    StderrLog(number)},
                   now);
    } else if ((by_itself && working) || bounced) {
      const Duration ran = status.phase == Phase::kRun ? now - status.since : Duration(0);
      FinishFailed(
          given->key, batch,
          {0, static_cast<uint64_t>(std::max<int64_t>(ran.count(), 0)) * 1000, Cause::kProcessEnded,
           "ProcessEnded", ProcessName(number) + " " + words, StderrLog(number)},
          now);
      blamed = true;
    } else {
      Requeue(given->key, batch, now);
    }
  }
  process.given.clear();
}

void AgentCore::Requeue(Key key, Batch& batch, Instant now) {
  kept_bytes_ -= batch.rows.size();
  batch.rows = {};
  batch.started = false;
  batch.state = State::kQueued;
  if (end_ != AgentEnd::kNone) return Finish(key, batch, Finished::Kind::kReturned, now);
  queue_.push_front(key);
}

}  // namespace parallelrun
