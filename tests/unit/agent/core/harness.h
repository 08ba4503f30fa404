// Drives an AgentCore as the edge does, with scripted processes and a scripted coordinator.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "agent/core/agent_core.h"

namespace parallelrun::agent {

class CoreHarness {
 public:
  explicit CoreHarness(uint32_t processes = 1, const AgentOptions& options = {})
      : core(options, Instant(seconds(1000))), now_(Instant(seconds(1000))) {
    registration.incarnation = {1, 1};
    registration.settings_digest = 77;
    registration.processes = processes;
    registration.run_timeout = seconds(60);
    registration.overhead_timeout = seconds(600);
  }

  AgentCore core;
  Registration registration;
  std::map<uint32_t, std::vector<uint64_t>> given;  // sequences by process
  std::map<uint32_t, uint64_t> taken_back;
  std::vector<uint32_t> started;
  std::vector<uint32_t> killed;
  std::string why;  // the last one was killed
  std::vector<uint32_t> stopped;
  std::vector<uint32_t> asked_where;
  std::vector<std::pair<uint32_t, std::string>> told_headers;
  job::ExchangeRequest request;

  Instant now() const { return now_; }
  void Advance(Duration by) {
    now_ += by;
    Step();
  }

  void Step() {
    core.Step(now_);
    std::vector<WorkerAction> actions;
    core.TakeActions(actions);
    for (const WorkerAction& action : actions) {
      switch (action.kind) {
        case WorkerAction::Kind::kStart: started.push_back(action.process); break;
        case WorkerAction::Kind::kGive: given[action.process].push_back(action.sequence); break;
        case WorkerAction::Kind::kTakeBack: taken_back[action.process] = action.sequence; break;
        case WorkerAction::Kind::kStop: stopped.push_back(action.process); break;
        case WorkerAction::Kind::kHeader:
          told_headers.emplace_back(action.process, action.work);
          break;
        case WorkerAction::Kind::kWhere: asked_where.push_back(action.process); break;
        case WorkerAction::Kind::kKill:
          killed.push_back(action.process);
          why = action.why;
          break;
      }
    }
  }

  CallKind Next() { return core.NextCall(now_, request); }

  // Registers, and has all processes ready; the first report (the ready events) is answered.
  void Begin() {
    ASSERT_EQ(Next(), CallKind::kRegister);
    core.OnRegistered(registration, now_);
    Step();
    for (const uint32_t process : started) ASSERT_TRUE(core.OnReady(process, false, now_));
    Step();
    ASSERT_EQ(Next(), CallKind::kReport);
  }

  job::ExchangeReply Reply() const {
    job::ExchangeReply reply;
    reply.epoch = registration.incarnation.epoch;
    return reply;
  }
  static job::Leased Lease(job::BatchId id, uint32_t epoch = 1) {
    return {id, {epoch, id + 100}, id * 7, "work"};
  }
  // Begin, with mini-batches 0 … count-1 leased in the first answer.
  void BeginWith(uint32_t count) {
    Begin();
    job::ExchangeReply reply = Reply();
    for (job::BatchId id = 0; id < count; ++id) reply.leased.push_back(Lease(id));
    core.OnReply(CallKind::kReport, reply, now_);
    Step();
  }

  void Work(uint32_t process, uint64_t sequence, Phase phase, Instant since) {
    core.OnStatus(process, {sequence, phase, since});
  }
  bool Succeed(uint32_t process, uint64_t sequence, std::string_view rows = "row\n") {
    const bool ok = core.OnResult(
        process, {{.run_ns = 1000, .items_succeeded = 1, .row_count = 1}, sequence, rows}, now_);
    Step();
    return ok;
  }
  void Exit(uint32_t process, const std::string& words = "exited with status 3",
            const job::OutputRanges& output = {}) {
    core.OnExited(process, words, now_, output);
    Step();
  }
  // Takes calls until a report comes; parked ones stay in flight.
  bool NextReport() {
    for (;;) {
      const CallKind call = Next();
      if (call == CallKind::kReport) return true;
      if (call != CallKind::kPark) return false;
    }
  }
  void Answer(const job::ExchangeReply& reply, CallKind call = CallKind::kReport) {
    core.OnReply(call, reply, now_);
    Step();
  }
  job::ExchangeReply SettleAll() const {
    job::ExchangeReply reply = Reply();
    for (const job::Finished& f : request.finished) reply.settled.push_back({f.id, f.fence});
    return reply;
  }

 private:
  Instant now_;
};

}  // namespace parallelrun::agent
