// AgentCore decides everything an agent does: what to ask of the coordinator, which mini-batch
// goes to which worker process, which process is started, stopped or killed, whose fault a death
// was, and when the agent is done. Pure: no clock, no I/O, no JSON; the edge (agent.h) carries
// events in and actions out, and a simulation can do the same.
//
// Each part below owns what it knows, and none knows another one; here stands only in which order
// they are asked (README.md shows how they lie together).
//
// Protocol of use, after each batch of events: OnStatus for each live process, Step, TakeActions,
// then NextCall until it gives kNone; come back at WakeAt or with the next event.
// Not thread-safe. Views in actions and calls are valid until the next method is called.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/core/agent_types.h"
#include "agent/core/calls.h"
#include "agent/core/ending.h"
#include "agent/core/held.h"
#include "agent/core/lives.h"
#include "agent/core/outcome.h"
#include "agent/core/pace.h"
#include "agent/core/processes.h"
#include "agent/core/session.h"
#include "agent/core/shortage.h"
#include "agent/core/told.h"
#include "agent/core/waits.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/node_messages.h"

namespace parallelrun::agent {

class AgentCore {
 public:
  AgentCore(const AgentOptions& options, Instant now);
  AgentCore(const AgentCore&) = delete;
  AgentCore& operator=(const AgentCore&) = delete;

  // The coordinator's side.

  // The next call to make; kRegister, kReport and kPark may each be in flight once, and each
  // must be answered by one of the On… below. For the latter two `request` is what to send.
  CallKind NextCall(Instant now, job::ExchangeRequest& request);
  void OnRegistered(const Registration& registration, Instant now);
  void OnReply(CallKind call, const job::ExchangeReply& reply, Instant now);
  void OnCallFailed(CallKind call, CallFailure failure, Instant now);

  // The processes' side. `process` is the number in the kStart action. The answers give false
  // when the process may not say that now: the edge ends it then.
  // `shutdown`: its script has one, or leaves something else for the end of the process.
  bool OnReady(uint32_t process, bool shutdown, Instant now);
  // Since then it has left something.
  bool OnOwes(uint32_t process);
  // shutdown() has returned, or raised with that message. False when nobody had asked for it.
  bool OnStopped(uint32_t process, std::string failure, Instant now);
  // `logged`: the log of its errors has it.
  void OnInitFailed(uint32_t process, std::string message, bool fatal, Instant now,
                    bool logged = true);
  bool OnRows(uint32_t process, uint64_t sequence, std::string_view rows);
  // Which mini-batch that is; nothing where the process has no such one to answer.
  std::optional<job::BatchId> BatchOf(uint32_t process, uint64_t sequence) const;
  bool OnResult(uint32_t process, const ResultAnswer& answer, Instant now);
  bool OnFailed(uint32_t process, FailedAnswer answer, Instant now);
  // It did not begin with a mini-batch that was taken back.
  bool OnPassedOver(uint32_t process, uint64_t sequence, Instant now);
  // False too when `text` is above the kind's bound. `kind` is kMetric or kHeader. A metric is
  // dropped while the coordinator takes none.
  bool OnTold(uint32_t process, job::ProcessEvent::Kind kind, std::string_view text);
  void OnStatus(uint32_t process, const StatusReading& page) { processes_.Status(process, page); }
  // The process is gone, and everything that it had sent was handed in. `words` say how it ended,
  // `output` is that of the mini-batch that it worked on. `where` follows why it was killed.
  void OnExited(uint32_t process, const std::string& words, Instant now,
                const job::OutputRanges& output = {}, const std::string& where = {});

  // Where its script is in Python, as the last kWhere asked; "": it did not say.
  void OnWhere(uint32_t process, std::string where);

  // Whether the coordinator has asked, since the last call, where its processes are: then the node
  // says what they wait for outside of Python, "": nothing.
  bool TakeAsked() { return std::exchange(asked_node_, false); }
  void OnWaits(std::string why);

  // Why there is no room where this node writes; "" when there is. While there is none nothing is
  // begun, and no failure and no death is counted.
  void OnRoom(const std::string& why);
  // Starting the process failed for want of space: it is over, and started again later.
  void OnInitRanOut(uint32_t process, std::string message, Instant now);

  // What of the side inputs this node fetches, for people, and the bytes that it has of them: no
  // process is started before they are there, which "" says.
  void OnFetching(const std::string& what, uint64_t bytes);
  // They never will be, here or on any other node.
  void OnSideInputsLost(std::string why, Instant now);

  // Which store keeps this node waiting, and how; "": none does.
  void OnStoreWait(const std::string& what);

  // Hands back what has not started, lets the rest finish for `grace`.
  void Drain(Duration grace, Instant now);
  // As Drain, without a grace.
  void StopNow(Instant now) { Drain(Duration(0), now); }

  // The objects of a mini-batch are on this node: `work` names their files. Or they will not be:
  // kStale, they are no more what was listed; kNoSpace, kUnavailable: it is no failure of theirs.
  void OnFetched(Key key, std::string work);
  void OnNotFetched(Key key, const Error& why, Instant now);

  // Time-outs, hand-outs, starts and ends of processes.
  void Step(Instant now);
  // Actions decided since the last call, in order.
  void TakeActions(std::vector<WorkerAction>& actions) { processes_.TakeActions(actions); }
  // Mini-batches whose objects are wanted, and not wanted any more, since the last call.
  void TakeObjects(std::vector<ObjectsWanted>& wanted, std::vector<Key>& let_go);
  // Mini-batches that have come to an end since the last call, in order; above a bound the later
  // ones are lost.
  void TakeNotes(std::vector<MiniBatchNote>& notes) { told_.TakeNotes(notes); }
  // When the next Step or NextCall would decide something without a new event.
  Instant WakeAt() const { return std::min(step_wake_, calls_.wake()); }

  // kNone while there is something to do; then all processes are gone.
  AgentEnd end() const { return ending_.end(); }
  // It has been told to start nothing more, and has handed back what had not started.
  bool draining() const { return ending_.draining(); }
  // The job is over, or it drains: nothing is wrong with a process that is not ready then.
  bool told_to_go() const { return ending_.told_to_go(); }
  bool any_ready() const { return processes_.ready() > 0; }
  // Why the agent gave up, for people.
  const std::string& end_message() const { return ending_.message(); }
  size_t held() const { return held_.size(); }
  // A URL by which its objects are fetched has ended: it asks for others. It was told some, or that
  // there are none.
  void OnUrlEnded(Key key) { held_.WantUrls(key, true); }
  void OnUrlsTold(Key key) { held_.WantUrls(key, false); }
  // Of a mini-batch that is held under this name, and whose objects are fetched.
  std::optional<Key> Fetching(const job::LeaseName& name) const {
    const std::optional<Key> key = held_.Find(name);
    return key && held_.Fetches(*key) ? key : std::nullopt;
  }
  uint64_t dropped_metrics() const { return told_.dropped_metrics(); }

 private:
  // The coordinator's side.
  ToSay WhatToSay();
  uint32_t Want(Instant now) const;
  bool Starving() const;
  void Adopt(const job::Adopted& adopted, Instant sent, Instant now);
  void AddLease(const job::Leased& leased, bool offered, Instant sent, Instant now);
  void Settle(const job::LeaseName& name, Instant now);
  void Refuse(const job::LeaseName& name, Instant now);
  void RefuseAll(Instant now);
  void SayAgain(const Flight& flight, Instant due);

  // The processes' side.
  void Look(Instant now);
  void StartMissing(Instant now);
  void HandOut(Instant now);
  void GiveAgain(Key key, uint32_t bounces, Instant now);
  Answered TakeAnswer(uint32_t process, uint64_t sequence, Instant now);
  void Finish(Key key, Outcome outcome, Instant now);
  void Return(const std::vector<Key>& keys, Instant now);
  void RanOut(std::string message, Instant now);
  void Tell(std::optional<Event> news);
  void Close(Instant now);
  void EndProcesses(Instant now);
  void End(AgentEnd end, Duration grace, std::string message, Instant now);

  const AgentOptions options_;
  Session session_;
  Calls calls_;
  Held held_;
  Processes processes_;
  Lives lives_;
  Pace pace_;
  Shortage shortage_;
  Waits waits_;
  Told told_;
  Ending ending_;

  bool awaits_deaths_ = false;  // of processes whose leases were over when it registered
  bool stalled_ = false;        // all processes are at long mini-batches
  bool asked_node_ = false;     // likewise
  bool asked_where_ = false;    // the processes are, and it is not decided yet
  Instant look_at_{};           // next look at the status readings
  Instant step_wake_ = kNever;
};

}  // namespace parallelrun::agent
