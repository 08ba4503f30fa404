// AgentCore decides everything an agent does: what to ask of the coordinator, which mini-batch
// goes to which worker process, which process is started, stopped or killed, whose fault a death
// was, and when the agent is done. Pure: no clock, no I/O, no JSON; the edge (agent.h) carries
// events in and actions out, and a simulation can do the same.
//
// Protocol of use, after each batch of events: OnStatus for each live process, Step, TakeActions,
// then NextCall until it gives kNone; come back at WakeAt or with the next event.
// Not thread-safe. Views in actions and calls are valid until the next method is called.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/core/agent_state.h"
#include "agent/core/agent_types.h"
#include "agent/core/pace.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/node_messages.h"

namespace parallelrun {

class AgentCore {
 public:
  AgentCore(const AgentOptions& options, Instant now);

  // The coordinator's side.

  // The next call to make; kRegister, kReport and kPark may each be in flight once, and each
  // must be answered by one of the On… below. For the latter two `request` is what to send.
  CallKind NextCall(Instant now, ExchangeRequest& request);
  void OnRegistered(const Registration& registration, Instant now);
  void OnReply(CallKind call, const ExchangeReply& reply, Instant now);
  void OnCallFailed(CallKind call, CallFailure failure, Instant now);

  // The processes' side. `process` is the number in the kStart action. The answers give false
  // when the process may not say that now: the edge ends it then.
  bool OnReady(uint32_t process, Instant now);
  void OnInitFailed(uint32_t process, std::string message, bool fatal, Instant now);
  bool OnRows(uint32_t process, uint64_t sequence, std::string_view rows);
  bool OnResult(uint32_t process, const ResultAnswer& answer, Instant now);
  bool OnFailed(uint32_t process, FailedAnswer answer, Instant now);
  // It did not begin with a mini-batch that was taken back.
  bool OnPassedOver(uint32_t process, uint64_t sequence, Instant now);
  // False too when `text` is above the kind's bound. `kind` is kMetric or kHeader. A metric is
  // dropped while the coordinator takes none.
  bool OnTold(uint32_t process, ProcessEvent::Kind kind, std::string_view text);
  void OnStatus(uint32_t process, const StatusReading& reading);
  // The process is gone, and everything that it had sent was handed in. `words` say how it ended,
  // `output` is that of the mini-batch that it worked on.
  void OnExited(uint32_t process, const std::string& words, Instant now,
                const OutputRanges& output = {});

  // Why there is no room where this node writes; "" when there is. While there is none nothing is
  // begun, and no failure and no death is counted.
  void OnRoom(const std::string& why);
  // Starting the process failed for want of space: it is over, and started again later.
  void OnInitRanOut(uint32_t process, std::string message, Instant now);

  // Hands back what has not started, lets the rest finish for `grace`.
  void Drain(Duration grace, Instant now);
  // As Drain, without a grace.
  void StopNow(Instant now) { Drain(Duration(0), now); }

  // Time-outs, hand-outs, starts and ends of processes.
  void Step(Instant now);
  // Actions decided since the last call, in order.
  void TakeActions(std::vector<WorkerAction>& actions);
  // Mini-batches that have come to an end since the last call, in order; at most kMaxNotes, the
  // later ones are lost.
  void TakeNotes(std::vector<MiniBatchNote>& notes);
  // When the next Step or NextCall would decide something without a new event.
  Instant WakeAt() const { return std::min(step_wake_, call_wake_); }

  // kNone while there is something to do; then all processes are gone.
  AgentEnd end() const { return done_ ? end_ : AgentEnd::kNone; }
  // It has been told to start nothing more, and has handed back what had not started.
  bool draining() const { return end_ == AgentEnd::kDrained; }
  // Why the agent gave up, for people.
  const std::string& end_message() const { return end_message_; }
  size_t held() const { return leases_.size(); }
  bool any_given() const { return given_ > 0; }
  bool any_process() const { return !processes_.empty(); }
  uint64_t dropped_metrics() const { return dropped_metrics_; }

 private:
  static constexpr Instant kNever = Instant::max();
  static constexpr uint32_t kAsyncDepth = 8;
  static constexpr size_t kMaxNotes = 10'000;
  static constexpr size_t kMaxKeptBytes = size_t{256} << 20;  // then nothing new is begun

  using State = agent_state::BatchState;
  using ProcessState = agent_state::ProcessState;
  using Key = agent_state::Key;
  using Batch = agent_state::Batch;
  using Process = agent_state::Process;
  using Given = agent_state::Given;
  using Event = agent_state::Event;
  using Flight = agent_state::Flight;
  using NameHash = agent_state::NameHash;

  // agent_core.cc: the coordinator's side
  bool ReportDue(Instant now) const;
  bool AwaitsDeaths();
  bool Starving() const;
  uint32_t Want(Instant now) const;
  void EndFlight(Flight& flight, Instant due);
  void Refuse(const LeaseName& name, Instant now);
  void Adopt(const Adopted& adopted, Instant sent, Instant now);
  void AddLease(const Leased& leased, bool offered, Instant sent, Instant now);
  void BackOff(Instant now);
  Flight& flight(CallKind call) { return flights_[call == CallKind::kPark ? 1 : 0]; }

  // agent_core_request.cc
  void AddOffersAndEvents(ExchangeRequest& request);
  void AddHeld(Flight& flight, ExchangeRequest& request);
  void AddFinished(ExchangeRequest& request);
  bool AddResult(Key key, const Batch& batch, size_t& budget, ExchangeRequest& request);

  // agent_core_end.cc
  void End(AgentEnd end, Duration grace, std::string message, Instant now);
  void EndProcesses(Instant now);
  void CheckDone(Instant now);

  // both
  Batch* Find(Key key);
  // By this node's clock the coordinator may have given it to another one.
  bool Over(const Batch& batch, Instant now) const;
  void Forget(Key key);
  void DropAll(Instant now);
  void AddEvent(uint32_t process, ProcessEvent::Kind kind, std::string message, std::string log);
  void Due(Instant when) { report_due_ = std::min(report_due_, when); }

  // agent_core_deaths.cc
  void HandBack(uint32_t number, Process& process, const std::string& words,
                const OutputRanges& output, Instant now);
  bool ToBlame(const Process& process, const Given& given, bool working, Batch& batch) const;
  void Requeue(Key key, Batch& batch, Instant now);

  // agent_core_room.cc
  bool HasRoom(Instant now) const { return no_room_.empty() && now >= short_until_; }
  void RanOut(std::string message, Instant now);
  void ReturnQueued(Instant now);
  void TellRoom();

  // agent_core_waiting.cc
  void CheckLate(uint32_t number, Process& process, Instant now);
  void TakeBack(Process& process, size_t index, Instant now);
  bool Stalled(Instant now) const;
  void ReturnWaiting(Instant now);
  uint32_t LateProcesses() const;

  // agent_core_processes.cc
  void Dispatch(Instant now);
  void CheckProcesses(Instant now);
  void CheckMiniBatch(uint32_t number, Process& process, Instant now);
  void CheckBegins(uint32_t number, Process& process, Instant now);
  void StartMissing(Instant now);
  void CheckFlight(uint32_t number, Process& process, Instant now);
  bool MayTake(const Process& process, const Batch& batch, uint32_t depth) const;
  bool HasOver(const Process& process, Instant now) const;
  void Kill(uint32_t number, Process& process);
  // The given mini-batch with that sequence number, if it may be answered now.
  std::deque<Given>::iterator Answerable(Process& process, uint64_t sequence);
  bool WholeRows(uint32_t number, const ResultAnswer& answer);
  Batch* TakeAnswered(uint32_t number, uint64_t sequence, Instant now, Key& key);
  void Finish(Key key, Batch& batch, Finished::Kind kind, Instant now);
  void FinishFailed(Key key, Batch& batch, FailedAnswer answer, Instant now);
  std::string StderrLog(uint32_t process) const;
  std::string ErrorLog(uint32_t process) const;

  const AgentOptions options_;
  Registration registration_;
  bool registered_ = false;  // at least once
  bool must_register_ = true;
  bool awaits_deaths_ = false;  // of processes whose leases were over when it registered

  std::unordered_map<Key, Batch> leases_;
  std::unordered_map<LeaseName, Key, NameHash> names_;
  std::deque<Key> queue_;       // to run; may hold keys that are gone or no longer queued
  std::deque<Key> unreported_;  // finished, not in flight; may hold keys that are gone
  size_t unfinished_ = 0;       // queued, or given and not refused
  size_t given_ = 0;            // in processes, refused ones too
  size_t offers_ = 0;           // batches to offer
  size_t kept_bytes_ = 0;       // rows of unsettled results
  Key next_key_ = 1;
  uint64_t sequence_ = 0;
  Pace pace_;
  bool stalled_ = false;

  std::map<uint32_t, Process> processes_;  // by number
  uint32_t next_process_ = 0;
  uint32_t process_end_ = 0;    // of the range that this incarnation may use
  uint32_t init_failures_ = 0;  // since the last ready
  uint32_t idle_deaths_ = 0;    // ready, then gone without an answer, in a row
  std::vector<WorkerAction> actions_;
  std::vector<MiniBatchNote> notes_;
  uint64_t dropped_metrics_ = 0;

  std::string no_room_;  // as the edge measured it
  std::string ran_out_;  // what a process had no space for, since the last result
  Instant short_until_{};
  Duration short_wait_{0};
  bool had_room_ = true;  // at the last step

  std::deque<Event> events_;
  std::array<Flight, 2> flights_;
  uint64_t requests_ = 0;  // of this incarnation
  uint64_t lost_ = 0;      // the last request before one ended without an answer; 0: none did
  Instant retry_at_{};
  Instant reachable_at_;  // last answer of a coordinator
  Duration backoff_{0};
  Instant renewed_at_{};         // when the last answered list of held leases was sent
  Instant report_due_ = kNever;  // when unreported_ is to be reported
  Instant park_at_{};

  AgentEnd end_ = AgentEnd::kNone;
  std::string end_message_;
  Instant end_deadline_ = kNever;  // when processes that still work are killed
  bool done_ = false;
  Instant check_at_{};  // next look at the status readings
  Instant step_wake_ = kNever;
  Instant call_wake_ = kNever;
};

}  // namespace parallelrun
