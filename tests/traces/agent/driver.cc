// The commands of the agent's traces. The coordinator and the processes are driven by hand: they do
// what their line says and nothing more. Mini-batches are named by their number, as the coordinator
// plans them; 4@1.2 is the second lease of epoch 1, of mini-batch 4.
//
//   node [processes=N] [lease=S] [run-timeout=S] [overhead-timeout=S] [drain-grace=S]
//        [no-speculation] [async] [shutdown] [shutdown-timeout=S]    the node and its job, whose
//        script may have a shutdown(); the first command
//   begin [leases=…]            it registers, all its processes are ready, and the answer to its
//   first
//                               report leases it these; told is only what it does then
//   registered [epoch=N] [first=N] [settings=N]       the coordinator takes its registration
//   answer report|park [leases=…] [settled=…] [refused=…] [adopted=…] [epoch=N] [finish] [drain]
//                               [close] [where]
//                               lists of mini-batches; settled=all: all that was reported
//   lost CALL | busy CALL | stale CALL | refused CALL    what becomes of the call: no answer, 503,
//   409,
//                               or one that says that it will never work
//   ready P | init-fails P why=TEXT [fatal] | init-runs-out P why=TEXT
//   at P BATCH loading|run|rows [knows]    the status page of process P, from now on; knows: that
//                               what waits behind it is taken back
//   waits P                     the page: it is at none
//   rows P BATCH [bytes=N]      a part of its rows
//   result P BATCH [rows=N] | fails P BATCH why=TEXT [no-space] | passes-over P BATCH
//   stopped P [why=TEXT]        shutdown() has returned, or raised
//   exits P why=TEXT
//   is-at P [where=TEXT]        where it is in Python, as it was asked
//   tells P TEXT [header]       a metric, or its header
//   room | no-room why=TEXT     as measured where the node writes
//   drain [grace=S] | stop      a first signal, a second one
//   pass SECONDS | pass 20ms    time goes by. What is only a list of what is held is not told
//        [answered]             the coordinator answers each exchange at once, or when its park is
//                               over, and settles what it reports
//        [alone]                no call is answered, and what they say is not told
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/agent_core.h"
#include "tests/traces/agent/words.h"
#include "tests/traces/trace.h"

namespace parallelrun::trace {
namespace {

const std::map<std::string, agent::Phase>& Phases() {
  static const std::map<std::string, agent::Phase> phases = {{"loading", agent::Phase::kLoading},
                                                             {"run", agent::Phase::kRun},
                                                             {"rows", agent::Phase::kRows}};
  return phases;
}

class Driver {
 public:
  std::string operator()(Command& command) {
    said_.clear();
    if (command.name() == "node") {
      Begin(command);
      return "";
    }
    const auto verb = Verbs().find(command.name());
    if (!core_ || verb == Verbs().end()) {
      command.Wrong(core_ ? "nobody knows this command" : "there is no node yet");
      return "";
    }
    (this->*verb->second)(command);
    Pump();
    return said_;
  }

 private:
  using Verb = void (Driver::*)(Command&);
  struct Worker {
    agent::StatusReading page;
    std::vector<std::pair<uint64_t, job::BatchId>> given;  // sequences, not answered
  };
  struct Sent {  // a call that is not answered
    uint32_t epoch = 0;
    Instant until{};  // parked
    std::vector<job::LeaseName> finished;
  };

  static const std::map<std::string, Verb>& Verbs() {
    static const std::map<std::string, Verb> verbs = {
        {"begin", &Driver::BeginWork},
        {"registered", &Driver::Registered},
        {"answer", &Driver::Answer},
        {"lost", &Driver::NotAnswered},
        {"busy", &Driver::NotAnswered},
        {"stale", &Driver::NotAnswered},
        {"refused", &Driver::NotAnswered},
        {"ready", &Driver::Ready},
        {"init-fails", &Driver::InitFails},
        {"init-runs-out", &Driver::InitFails},
        {"at", &Driver::At},
        {"waits", &Driver::Waits},
        {"rows", &Driver::Rows},
        {"result", &Driver::Result},
        {"fails", &Driver::Fails},
        {"passes-over", &Driver::PassesOver},
        {"stopped", &Driver::Stopped},
        {"exits", &Driver::Exits},
        {"is-at", &Driver::IsAt},
        {"tells", &Driver::Tells},
        {"room", &Driver::Room},
        {"no-room", &Driver::Room},
        {"drain", &Driver::Drain},
        {"stop", &Driver::Drain},
        {"pass", &Driver::Pass},
    };
    return verbs;
  }

  void Line(const std::string& text) {
    if (muted_) return;
    const Duration since = now_ - passing_since_;
    if (passing_)
      said_ += fmt::format("after {:g} s: ", static_cast<double>(since / milliseconds(1)) / 1000);
    said_ += text + "\n";
  }

  void Begin(Command& command) {
    terms_.processes = static_cast<uint32_t>(command.Number("processes", 1));
    terms_.lease = seconds(command.Number("lease", 10));
    terms_.run_timeout = seconds(command.Number("run-timeout", 60));
    terms_.overhead_timeout = seconds(command.Number("overhead-timeout", 600));
    terms_.speculation = !command.Flag("no-speculation");
    terms_.async = command.Flag("async");
    terms_.settings_digest = 1;
    shutdown_ = command.Flag("shutdown");
    terms_.shutdown_timeout = seconds(command.Number("shutdown-timeout", 300));
    options_.drain_grace = seconds(command.Number("drain-grace", 40));
    if (core_) command.Wrong("there is one already");
    core_ = std::make_unique<agent::AgentCore>(options_, now_);
  }

  void BeginWork(Command& command) {
    muted_ = true;
    Pump();
    Register({1, 1}, 0);
    Pump();
    for (auto& [number, worker] : workers_) {
      worker.page = {0, agent::Phase::kWaiting, now_};
      core_->OnReady(number, shutdown_, now_);
    }
    Reply(agent::CallKind::kPark, {});  // a newer exchange ends the older one
    Pump();
    muted_ = false;
    job::ExchangeReply reply;
    AddLeases(command, reply);
    Reply(agent::CallKind::kReport, reply);
  }

  // The coordinator's side.

  void Registered(Command& command) {
    Pump();
    if (!in_flight_.contains(agent::CallKind::kRegister)) return command.Wrong("it did not ask");
    const auto epoch = static_cast<uint32_t>(command.Number("epoch", terms_.incarnation.epoch));
    const uint32_t number = terms_.incarnation.number + 1;
    terms_.settings_digest = command.Number("settings", terms_.settings_digest);
    Register({std::max(epoch, 1U), number},
             static_cast<uint32_t>(command.Number("first", 1000 * (number - 1))));
  }

  void Register(const job::Incarnation& incarnation, uint32_t first) {
    in_flight_.erase(agent::CallKind::kRegister);
    terms_.incarnation = incarnation;
    terms_.first_process = first;
    core_->OnRegistered(terms_, now_);
  }

  agent::CallKind Call(Command& command) {
    const std::string word = command.Word("call");
    const agent::CallKind call = word == "report" ? agent::CallKind::kReport
                                 : word == "park" ? agent::CallKind::kPark
                                                  : agent::CallKind::kRegister;
    if (!in_flight_.contains(call)) command.Wrong("there is no " + word + " under way");
    return call;
  }

  std::vector<job::LeaseName> Names(Command& command, const std::string& key) {
    std::vector<job::LeaseName> names;
    for (const std::string& word : command.List(key)) {
      const auto found = leases_.find(command.NumberIn(word));
      if (found == leases_.end()) {
        command.Wrong("nobody was leased " + word);
      } else {
        names.push_back(found->second);
      }
    }
    return names;
  }

  void Answer(Command& command) {
    const agent::CallKind call = Call(command);
    const auto sent = in_flight_.find(call);
    if (sent == in_flight_.end()) return;
    job::ExchangeReply reply;
    reply.epoch = static_cast<uint32_t>(command.Number("epoch", sent->second.epoch));
    if (command.Text("settled", "") == "all") {
      reply.settled = sent->second.finished;
    } else {
      reply.settled = Names(command, "settled");
    }
    reply.refused = Names(command, "refused");
    for (const job::LeaseName& name : Names(command, "adopted")) {
      const job::LeaseName now = Lease(name.id, terms_.incarnation.epoch);
      reply.adopted.push_back({name.id, name.fence, now.fence});
    }
    AddLeases(command, reply);
    const std::string header = command.Text("header", "");
    reply.header = header;
    if (command.Flag("finish")) reply.directive = job::Directive::kFinish;
    if (command.Flag("drain")) reply.directive = job::Directive::kDrain;
    if (command.Flag("close")) reply.directive = job::Directive::kClose;
    if (command.Flag("where")) reply.directive = job::Directive::kWhere;
    Reply(call, reply);
  }

  // The Work of a mini-batch is its number, so that what is given can be named.
  void AddLeases(Command& command, job::ExchangeReply& reply) {
    for (const std::string& word : command.List("leases")) {
      const job::LeaseName name = Lease(command.NumberIn(word), terms_.incarnation.epoch);
      reply.leased.push_back({name.id, name.fence, name.id, *work_.insert(word).first});
    }
  }

  void Reply(agent::CallKind call, job::ExchangeReply reply) {
    const auto sent = in_flight_.find(call);
    if (sent == in_flight_.end()) return;
    if (reply.epoch == 0) reply.epoch = sent->second.epoch;
    in_flight_.erase(sent);
    core_->OnReply(call, reply, now_);
  }

  job::LeaseName Lease(job::BatchId id, uint32_t epoch) {
    return leases_[id] = {id, {epoch, ++fences_[epoch]}};
  }

  void NotAnswered(Command& command) {
    static const std::map<std::string, agent::CallFailure> failures = {
        {"lost", agent::CallFailure::kUnreachable},
        {"busy", agent::CallFailure::kBusy},
        {"stale", agent::CallFailure::kStale},
        {"refused", agent::CallFailure::kRefused}};
    const agent::CallKind call = Call(command);
    if (in_flight_.erase(call) > 0) core_->OnCallFailed(call, failures.at(command.name()), now_);
  }

  // The processes' side.

  uint32_t Process(Command& command) {
    return static_cast<uint32_t>(command.NumberWord("process"));
  }

  // Of the mini-batch that the process was given and has not answered.
  uint64_t Sequence(Command& command, uint32_t process) {
    const uint64_t id = command.NumberWord("mini-batch");
    for (const auto& [sequence, batch] : workers_[process].given) {
      if (batch == id) return sequence;
    }
    command.Wrong(fmt::format("process {} was not given {}", process, id));
    return 0;
  }

  void Took(bool took, uint32_t process) {
    if (!took) Line(fmt::format("process {} may not say that: it is ended", process));
  }

  void Answered(uint32_t process, uint64_t sequence) {
    std::erase_if(workers_[process].given,
                  [sequence](const auto& one) { return one.first == sequence; });
  }

  void Ready(Command& command) {
    const uint32_t process = Process(command);
    workers_[process].page = {0, agent::Phase::kWaiting, now_};
    Took(core_->OnReady(process, shutdown_, now_), process);
  }

  void Stopped(Command& command) {
    const uint32_t process = Process(command);
    Took(core_->OnStopped(process, command.Text("why", ""), now_), process);
  }

  void InitFails(Command& command) {
    const uint32_t process = Process(command);
    const std::string why = command.Text("why");
    if (command.name() == "init-runs-out") return core_->OnInitRanOut(process, why, now_);
    core_->OnInitFailed(process, why, command.Flag("fatal"), now_);
  }

  void At(Command& command) {
    const uint32_t process = Process(command);
    agent::StatusReading& page = workers_[process].page;
    page.sequence = Sequence(command, process);
    const auto phase = Phases().find(command.Word("phase"));
    if (phase == Phases().end()) return command.Wrong("that is no phase");
    if (command.Flag("knows")) {
      page.taken_back = taken_back_[process];
    } else {
      page.since = now_;
    }
    page.phase = phase->second;
  }

  void Waits(Command& command) {
    agent::StatusReading& page = workers_[Process(command)].page;
    page.phase = agent::Phase::kWaiting;
    page.since = now_;
  }

  void IsAt(Command& command) {
    const uint32_t process = Process(command);
    core_->OnWhere(process, command.Text("where", ""));
  }

  void Rows(Command& command) {
    const uint32_t process = Process(command);
    const uint64_t sequence = Sequence(command, process);
    std::string rows(command.Number("bytes", 1000) - 1, 'x');
    Took(core_->OnRows(process, sequence, rows + "\n"), process);
  }

  void Result(Command& command) {
    const uint32_t process = Process(command);
    agent::ResultAnswer answer;
    answer.sequence = Sequence(command, process);
    answer.run_ns = 1'000'000;
    answer.items_succeeded = 1;
    answer.row_count = static_cast<uint32_t>(command.Number("rows", 1));
    std::string rows;
    for (uint32_t i = 0; i < answer.row_count; ++i) rows += "row\n";
    answer.rows = rows;
    const bool took = core_->OnResult(process, answer, now_);
    if (took) Answered(process, answer.sequence);
    Took(took, process);
  }

  void Fails(Command& command) {
    const uint32_t process = Process(command);
    agent::FailedAnswer answer;
    answer.sequence = Sequence(command, process);
    answer.kind = command.Flag("no-space") ? agent::kNoSpaceKind : "Exception";
    answer.message = command.Text("why");
    Answered(process, answer.sequence);
    Took(core_->OnFailed(process, std::move(answer), now_), process);
  }

  void PassesOver(Command& command) {
    const uint32_t process = Process(command);
    const uint64_t sequence = Sequence(command, process);
    Answered(process, sequence);
    Took(core_->OnPassedOver(process, sequence, now_), process);
  }

  void Exits(Command& command) {
    const uint32_t process = Process(command);
    core_->OnStatus(process, workers_[process].page);
    workers_.erase(process);
    core_->OnExited(process, command.Text("why"), now_);
  }

  void Tells(Command& command) {
    const uint32_t process = Process(command);
    const auto kind = command.Flag("header") ? job::ProcessEvent::Kind::kHeader
                                             : job::ProcessEvent::Kind::kMetric;
    Took(core_->OnTold(process, kind, command.Word("text")), process);
  }

  void Room(Command& command) {
    core_->OnRoom(command.name() == "room" ? "" : command.Text("why"));
  }

  void Drain(Command& command) {
    if (command.name() == "stop") return core_->StopNow(now_);
    core_->Drain(seconds(command.Number("grace", 40)), now_);
  }

  // Time.

  void Pass(Command& command) {
    std::string word = command.Word("time");
    const bool short_time = word.ends_with("ms");
    if (short_time) word.resize(word.size() - 2);
    const auto count = static_cast<int64_t>(command.NumberIn(word));
    const Instant end = now_ + (short_time ? milliseconds(count) : seconds(count));
    answered_ = command.Flag("answered");
    alone_ = command.Flag("alone");
    passing_ = true;
    passing_since_ = now_;
    for (;;) {
      Pump();
      if (now_ >= end) break;
      Instant next = std::min(end, core_->WakeAt());
      for (const auto& [call, sent] : in_flight_) {
        if (answered_) next = std::min(next, sent.until);
      }
      now_ = std::max(next, now_ + milliseconds(1));
    }
    passing_ = answered_ = alone_ = false;
  }

  void Pump() {
    do {
      PumpOnce();
    } while (EndCalls());
  }

  // True if that may have changed something.
  bool EndCalls() {
    for (const auto& [call, sent] : in_flight_) {
      if (!alone_ && (!answered_ || call == agent::CallKind::kRegister)) continue;
      if (!alone_ && now_ < sent.until) continue;
      const agent::CallKind ended = call;
      if (alone_) {
        in_flight_.erase(ended);
        core_->OnCallFailed(ended, agent::CallFailure::kUnreachable, now_);
      } else {
        job::ExchangeReply reply;
        reply.settled = sent.finished;
        Reply(ended, reply);
      }
      return true;
    }
    return false;
  }

  void PumpOnce() {
    if (ended_) return;
    for (const auto& [number, worker] : workers_) core_->OnStatus(number, worker.page);
    core_->Step(now_);
    std::vector<agent::WorkerAction> actions;
    core_->TakeActions(actions);
    for (const agent::WorkerAction& action : actions) Say(action);
    if (core_->end() != agent::AgentEnd::kNone) {
      ended_ = true;
      const std::string& why = core_->end_message();
      return Line(fmt::format("the agent ends: {}{}", EndWords(core_->end()),
                              why.empty() ? "" : ": " + why));
    }
    for (;;) {
      const agent::CallKind call = core_->NextCall(now_, request_);
      if (call == agent::CallKind::kNone) break;
      Sent& sent = in_flight_[call];
      sent = {};
      if (call == agent::CallKind::kRegister) {
        if (!alone_) Line("asks to be registered");
        continue;
      }
      sent.epoch = request_.incarnation.epoch;
      sent.until = now_ + milliseconds(request_.park_ms);
      for (const job::Finished& one : request_.finished)
        sent.finished.push_back({one.id, one.fence});
      if (alone_ || (answered_ && IsPlain(request_))) continue;
      for (const std::string& line : LinesOf(call, request_)) Line(line);
    }
  }

  // What it does, in words.

  void Say(const agent::WorkerAction& action) {
    const uint32_t process = action.process;
    switch (action.kind) {
      case agent::WorkerAction::Kind::kStart:
        workers_[process] = {};
        return Line(fmt::format("starts process {}", process));
      case agent::WorkerAction::Kind::kGive: {
        const job::BatchId id = std::stoull(std::string(action.work));
        workers_[process].given.emplace_back(action.sequence, id);
        return Line(fmt::format("gives {} to process {}", id, process));
      }
      case agent::WorkerAction::Kind::kTakeBack: {
        taken_back_[process] = action.sequence;
        std::string ids;
        for (const auto& [sequence, id] : workers_[process].given) {
          if (sequence <= workers_[process].page.sequence || sequence > action.sequence) continue;
          ids += (ids.empty() ? "" : ", ") + std::to_string(id);
        }
        return Line(fmt::format("takes {} back from process {}", ids, process));
      }
      case agent::WorkerAction::Kind::kStop:
        return Line(fmt::format("asks process {} for shutdown()", process));
      case agent::WorkerAction::Kind::kHeader:
        return Line(fmt::format("tells process {} the header {}", process, action.work));
      case agent::WorkerAction::Kind::kWhere:
        return Line(fmt::format("asks process {} where it is", process));
      case agent::WorkerAction::Kind::kKill:
        return Line(fmt::format("kills process {}{}", process,
                                action.why.empty() ? "" : ": " + std::string(action.why)));
    }
  }

  agent::AgentOptions options_;
  agent::Registration terms_;
  std::unique_ptr<agent::AgentCore> core_;
  Instant now_{seconds(1000)};
  bool passing_ = false;
  bool shutdown_ = false;
  bool answered_ = false;
  bool alone_ = false;
  bool ended_ = false;
  bool muted_ = false;
  Instant passing_since_{};
  job::ExchangeRequest request_;
  std::map<agent::CallKind, Sent> in_flight_;
  std::map<uint32_t, Worker> workers_;
  std::map<uint32_t, uint64_t> taken_back_;        // by process
  std::map<job::BatchId, job::LeaseName> leases_;  // the last one
  std::set<std::string> work_;
  std::map<uint32_t, uint64_t> fences_;  // by epoch
  std::string said_;
};

class AgentTraces : public testing::TestWithParam<std::string> {};

TEST_P(AgentTraces, SaysTheSame) {
  Driver driver;
  Check(GetParam(), [&driver](Command& command) { return driver(command); });
}

INSTANTIATE_TEST_SUITE_P(Traces, AgentTraces, testing::ValuesIn(Texts("agent")), NameOf);

}  // namespace
}  // namespace parallelrun::trace
