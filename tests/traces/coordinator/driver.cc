// The commands of the coordinator's traces. Nodes are driven by hand: they say what their line says
// and nothing more.
//
//   limits [nodes=N] [processes=N] [tries=N] [losses=N] [speculation] [slow=S] [isolate]
//          [progress-timeout=S] [init-timeout=S] [first-task-timeout=S] [error-threshold=N]
//          [failed-count=N] [failed-percent=N] [short-return-fails] [shutdown-timeout=S]
//          [summary-only]    a job; it is the first command, or left out
//   plan N [items=N] [more]     N further mini-batches of so many items (1); durable, unless there
//                               is "more" to come
//   plan-ends | plan-fails why=TEXT
//   join NODE [agent=A] [processes=N] [pod=N]           it registers
//   exchange NODE [as=INCARNATION] [want=N] [park=S] [held=…] [began=…] [offers=…] [done=…]
//          [failed=…] [returned=…]: lists of leases such as 0@1.2; began: held, and run() works on
//          it [cause=WORD] [items=N] [skipped=N] [offset=N]    of what is done or has failed
//          [part=LEASE] [event=WORD] [process=N] [why=TEXT] [number=N] [open=N] [unheard] [changed]
//          changed: what it offers has another content; [settings=N]: of another job
//   gone N                      the connection of exchange #N
//   leave NODE | superseded NODE agent=A [pod=N]
//   pod-ended NODE pod=N reason=WORD [exit=N]
//   sync [looks-fail]           what was appended becomes durable
//   pass SECONDS [alive=NODES]  a tick each second; these nodes say each second what they hold
//   frozen SECONDS              the coordinator stands still so long
//   restart [generation=N]      the next epoch; what was not durable is forgotten
//   newer-epoch                 another coordinator claims the next epoch
//   drain | cancel | nodes N | control generation=N [nodes=N] [error-threshold=N] [drain] [cancel]
//   thresholds [error-threshold=N] [failed-count=N] [failed-percent=N]
//   pause why=TEXT | unpause | published path=P bytes=N rows=N | nothing-to-publish | close
//   counts | nodes-there | refusals
#include <spdlog/fmt/fmt.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "job/record_codec.h"
#include "ledger/log_format.h"
#include "tests/traces/coordinator/words.h"
#include "tests/traces/trace.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::trace {
namespace {

using Phase = coordinator::Coordinator::Phase;

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kRunning: return "runs";
    case Phase::kDraining: return "drains";
    case Phase::kClosing: return "closes";
    case Phase::kDeciding: return "has a verdict that is not durable";
    case Phase::kFinalizing: return "publishes";
    case Phase::kEnded: return "has ended";
  }
  std::abort();
}

class Driver {
 public:
  std::string operator()(Command& command) {
    said_.clear();
    if (command.name() == "limits") {
      if (h_) command.Wrong("a job is there already");
      Begin(ReadLimits(command));
      return "";
    }
    if (!h_) Begin({});
    const auto found = Verbs().find(command.name());
    if (found == Verbs().end()) {
      command.Wrong("nobody knows this command");
      return "";
    }
    (this->*found->second)(command);
    SayPhase();
    return said_;
  }

 private:
  using Verb = void (Driver::*)(Command&);
  struct Node {
    job::Incarnation incarnation;
    std::map<job::LeaseName, bool> holds;  // whether run() works on it
  };

  static const std::map<std::string, Verb>& Verbs() {
    static const std::map<std::string, Verb> verbs = {
        {"plan", &Driver::Plan},
        {"plan-ends", &Driver::PlanEnds},
        {"plan-fails", &Driver::PlanFails},
        {"join", &Driver::Join},
        {"exchange", &Driver::Exchange},
        {"gone", &Driver::Gone},
        {"leave", &Driver::Leave},
        {"superseded", &Driver::Superseded},
        {"pod-ended", &Driver::PodEnded},
        {"sync", &Driver::Sync},
        {"pass", &Driver::Pass},
        {"frozen", &Driver::Frozen},
        {"restart", &Driver::Restart},
        {"newer-epoch", &Driver::NewerEpoch},
        {"drain", &Driver::Drain},
        {"cancel", &Driver::Cancel},
        {"nodes", &Driver::SetNodes},
        {"control", &Driver::Control},
        {"thresholds", &Driver::SetThresholds},
        {"pause", &Driver::Pause},
        {"unpause", &Driver::Unpause},
        {"published", &Driver::OnPublished},
        {"nothing-to-publish", &Driver::NothingToPublish},
        {"close", &Driver::Close},
        {"counts", &Driver::Counts},
        {"nodes-there", &Driver::NodesThere},
        {"refusals", &Driver::Refusals},
    };
    return verbs;
  }

  void Begin(const coordinator::CoordinatorLimits& limits) {
    h_ = std::make_unique<coordinator::CoordinatorHarness>(limits);
    NoteDurable(false);
  }
  coordinator::Coordinator& core() { return *h_->core; }
  void Line(const std::string& line) { said_ += line + "\n"; }

  // --- plan
  void Plan(Command& c) {
    const uint64_t batches = c.NumberWord("number of mini-batches");
    const auto items = static_cast<uint32_t>(c.Number("items", 1));
    job::TabularChunk chunk;
    chunk.path = "/in/rows.csv";
    chunk.format = "{}";
    job::PlanChunkRecord record;
    record.first = h_->state.counts().planned;
    record.first_item = h_->state.counts().items_planned;
    for (uint64_t i = record.first; i < record.first + batches; ++i) {
      chunk.slices.push_back({i * 100, 100, items});
    }
    record.content = chunk;
    std::string encoded;
    job::EncodeRecord(record, encoded);
    const Status added = core().AddChunk(encoded, h_->now());
    if (!added.ok()) Line(std::string("error ") + added.error().message);
    if (c.Flag("more")) return;
    core().EndPlan(h_->now());
    h_->Sync();
    NoteDurable(false);
  }
  void PlanEnds(Command&) { core().EndPlan(h_->now()); }
  void PlanFails(Command& c) { core().FailPlan({Code::kNotFound, c.Text("why")}, h_->now()); }

  // --- nodes
  uint32_t ReadNode(Command& c) { return static_cast<uint32_t>(c.NumberWord("node")); }
  Node& Known(Command& c, uint32_t node) {
    if (!nodes_.contains(node)) c.Wrong("node " + std::to_string(node) + " has never joined");
    return nodes_[node];
  }
  void Join(Command& c) {
    const uint32_t node = ReadNode(c);
    const auto processes = static_cast<uint32_t>(c.Number("processes", 1));
    const coordinator::NodeRegistration told =
        core().Register(node, c.Text("agent", "a"), processes, h_->now(), c.Number("pod", 0));
    nodes_[node] = {told.incarnation, {}};
    Line(fmt::format("node {} is {}, its processes are numbered from {}", node,
                     Say(told.incarnation), told.first_process));
  }

  void Exchange(Command& c) {
    const uint32_t node = ReadNode(c);
    job::ExchangeRequest request = ReadRequest(c, node);
    Send(node, request, true);
  }

  job::ExchangeRequest ReadRequest(Command& c, uint32_t node) {
    texts_.clear();
    const job::Incarnation as =
        c.Has("as") ? ReadIncarnation(c, c.Text("as")) : Known(c, node).incarnation;
    job::ExchangeRequest request = h_->Request(as, static_cast<uint32_t>(c.Number("want", 0)),
                                               static_cast<uint32_t>(c.Number("park", 0)) * 1000);
    request.settings_digest = c.Number("settings", request.settings_digest);
    request.number = c.Number("number", 0);
    request.open = c.Number("open", 0);
    request.unheard = c.Flag("unheard");
    Node& known = nodes_[node];
    for (const std::string& text : c.List("held")) {
      const job::LeaseName name = ReadLease(c, text);
      request.held.push_back({name.id, name.fence, false});
    }
    for (const std::string& text : c.List("began")) {
      const job::LeaseName name = ReadLease(c, text);
      request.held.push_back({name.id, name.fence, true});
      known.holds[name] = true;
    }
    const bool changed = c.Flag("changed");
    for (const std::string& text : c.List("offers")) {
      const job::LeaseName name = ReadLease(c, text);
      request.offered.push_back({name.id, name.fence, digests_[name.id] + (changed ? 1 : 0)});
    }
    if (c.Has("part")) {
      const job::LeaseName name = ReadLease(c, c.Text("part"));
      request.parts.push_back({name.id, name.fence, c.Number("offset", 0), "one\n"});
    }
    request.finished = ReadFinished(c, h_->state);
    for (const job::Finished& done : request.finished) known.holds.erase({done.id, done.fence});
    if (c.Has("event")) {
      request.events.push_back({static_cast<uint32_t>(c.Number("process", 0)),
                                ReadEvent(c, c.Text("event")), Keep(c.Text("why", "")), ""});
    }
    return request;
  }
  // What a request points into lives until the next one is read.
  std::string_view Keep(const std::string& text) {
    texts_.push_back(std::make_unique<std::string>(text));
    return *texts_.back();
  }

  // `told`: an answer that says nothing is told too.
  void Send(uint32_t node, const job::ExchangeRequest& request, bool told) {
    struct Waiting {
      bool open = true;
      uint64_t number = 0;  // 0: it was answered at once
    };
    auto waiting = std::make_shared<Waiting>();
    const auto heard = [this, node, told, waiting](const Result<job::ExchangeReply>& reply) {
      waiting->open = false;
      if (reply.ok()) Note(node, *reply);
      const std::string text = Say(reply);
      if (!told && waiting->number == 0 && text == "nothing") return;
      Line(waiting->number == 0 ? fmt::format("node {}: {}", node, text)
                                : fmt::format("#{}, node {}: {}", waiting->number, node, text));
    };
    h_->Look();
    const uint64_t exchange = core().Exchange(node, request, h_->now(), heard);
    h_->Look();
    if (!waiting->open) return;
    waiting->number = waits_.size() + 1;
    waits_[waiting->number] = exchange;
    Line(fmt::format("#{}, node {} waits for the answer", waiting->number, node));
  }
  void Note(uint32_t node, const job::ExchangeReply& reply) {
    Node& known = nodes_[node];
    for (const job::Leased& l : reply.leased) {
      known.holds[{l.id, l.fence}] = false;
      digests_[l.id] = l.digest;
    }
    for (const job::Adopted& a : reply.adopted) {
      known.holds[{a.id, a.fence}] = known.holds[{a.id, a.old_fence}];
      known.holds.erase({a.id, a.old_fence});
    }
    for (const job::LeaseName& name : reply.refused) known.holds.erase(name);
    for (const job::LeaseName& name : reply.settled) known.holds.erase(name);
  }

  void Gone(Command& c) {
    const uint64_t number = c.NumberWord("number of an exchange");
    if (!waits_.contains(number)) c.Wrong("no such exchange waits");
    core().ConnectionGone(waits_[number], h_->now());
  }
  void Leave(Command& c) {
    const uint32_t node = ReadNode(c);
    core().Leave(node, Known(c, node).incarnation, h_->now());
  }
  void Superseded(Command& c) {
    const uint32_t node = ReadNode(c);
    const std::string agent = c.Text("agent");
    const bool is = core().nodes().Superseded(node, agent, c.Number("pod", 0));
    Line(fmt::format("{} {}", agent, is ? "may not register any more" : "may register"));
  }
  void PodEnded(Command& c) {
    const uint32_t node = ReadNode(c);
    core().OnPodEnd(
        {node, c.Number("pod"), c.Text("reason"), static_cast<int32_t>(c.Number("exit", 137))},
        h_->now());
  }

  // --- ledger and time
  void Sync(Command& c) {
    const bool fail = c.Flag("looks-fail");
    ASSERT_TRUE(h_->ledger->Flush().ok());
    NoteDurable(true);
    if (fail) h_->files.FailOperation(1, {Code::kInternal, "stat: Stale file handle"});
    core().OnDurable(h_->now());
    h_->Look();
  }
  void NoteDurable(bool told) {
    size_t number = 0;
    const auto visit = [&](const job::Record& record, const job::Place&, const job::Place&) {
      // A seal that is not known to be durable itself is not told.
      if (std::holds_alternative<job::SealRecord>(record) || number++ < records_) return Status();
      const std::string text = Say(record);
      if (told && !text.empty()) Line("durable: " + text);
      return Status();
    };
    const auto read = ledger::Ledger::Inspect(h_->files, "/job/state", visit);
    ASSERT_TRUE(read.ok()) << read.error().message;
    records_ = number;
  }
  void Pass(Command& c) {
    const uint64_t times = c.NumberWord("number of seconds");
    std::vector<uint32_t> alive;
    for (const std::string& node : c.List("alive")) {
      alive.push_back(static_cast<uint32_t>(c.NumberIn(node)));
      Known(c, alive.back());
    }
    for (uint64_t i = 0; i < times; ++i) {
      for (const uint32_t node : alive) {
        job::ExchangeRequest request = h_->Request(nodes_[node].incarnation);
        for (const auto& [name, began] : nodes_[node].holds) {
          request.held.push_back({name.id, name.fence, began});
        }
        Send(node, request, false);
      }
      h_->Advance(seconds(1));
      SayPhase();
    }
  }
  void Frozen(Command& c) { h_->Advance(seconds(c.NumberWord("number of seconds"))); }
  void Restart(Command& c) {
    phase_ = Phase::kRunning;
    superseded_ = false;
    h_->Start(static_cast<uint32_t>(c.Number("generation", 0)));
    NoteDurable(false);
    Line(fmt::format("epoch {}", h_->ledger->epoch()));
  }
  void NewerEpoch(Command&) {
    h_->files.Put("/job/state/epochs/" + ledger::LogName(h_->ledger->epoch() + 1), "");
  }

  // --- people and the cluster
  void Drain(Command&) { core().Drain(h_->now()); }
  void Cancel(Command&) { core().Cancel(h_->now()); }
  void SetNodes(Command& c) {
    core().SetNodes(static_cast<uint32_t>(c.NumberWord("number of nodes")), h_->now());
  }
  void Control(Command& c) {
    coordinator::ControlRequest control;
    control.generation = c.Number("generation");
    if (c.Has("nodes")) control.spec["nodeCount"] = c.Number("nodes");
    if (c.Has("error-threshold")) control.spec["errorThreshold"] = c.Number("error-threshold");
    control.drain = c.Flag("drain");
    control.cancel = c.Flag("cancel");
    core().Control(control, h_->now());
    Line(fmt::format("in force: generation {}", core().control_generation()));
  }
  void SetThresholds(Command& c) { core().SetThresholds(ReadThresholds(c), h_->now()); }
  void Pause(Command& c) { core().Pause(c.Text("why")); }
  void Unpause(Command&) { core().Unpause(); }
  void OnPublished(Command& c) {
    core().OnPublished({c.Text("path"), c.Number("bytes"), c.Number("rows")}, h_->now());
  }
  void NothingToPublish(Command&) { core().OnNothingToPublish(); }
  void Close(Command&) { core().Close({Code::kUnavailable, "the coordinator stops"}); }

  // --- what it says when asked
  void Counts(Command&) {
    const job::JobCounts& counts = h_->state.counts();
    const job::Losses losses = core().losses();
    Line(fmt::format("mini-batches: {} planned, {} running, {} pending, {} succeeded, {} failed",
                     counts.planned, core().running(), core().pending(), counts.succeeded,
                     counts.failed));
    Line(fmt::format("items: {}", job::ItemsText(counts, losses)));
    if (!core().WaitsFor().empty()) Line("waits: " + core().WaitsFor());
  }
  void NodesThere(Command&) {
    for (const auto& [index, node] : core().nodes().all()) {
      Line(fmt::format("node {}: {}, holds {}", index,
                       node.gave_up      ? "gave up"
                       : node.registered ? "there"
                                         : "away",
                       core().availability().HeldCount(index)));
    }
  }
  void Refusals(Command&) {
    for (const auto& line : core().told().TakeRefusals()) {
      Line((line.warns ? "warning: " : "told: ") + line.text);
    }
  }

  void SayPhase() {
    if (core().newest().superseded() && !superseded_) {
      superseded_ = true;
      Line("the coordinator is superseded");
    }
    if (core().phase() == phase_) return;
    phase_ = core().phase();
    Line(fmt::format("the job {}", PhaseName(phase_)));
    const auto& verdict = h_->state.verdict();
    if (phase_ != Phase::kDeciding || !verdict) return;
    Line(fmt::format("verdict: {}, {}: {}",
                     verdict->outcome == job::Outcome::kSucceeded ? "Succeeded" : "Failed",
                     verdict->reason, verdict->message));
  }

  std::unique_ptr<coordinator::CoordinatorHarness> h_;
  std::map<uint32_t, Node> nodes_;
  std::map<job::BatchId, uint64_t> digests_;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::map<uint64_t, uint64_t> waits_;  // number in the text to that of the coordinator
  size_t records_ = 0;                  // that were told, or stood there before
  Phase phase_ = Phase::kRunning;
  bool superseded_ = false;
  std::string said_;
};

class CoordinatorTraces : public testing::TestWithParam<std::string> {};

TEST_P(CoordinatorTraces, SaysTheSame) {
  Driver driver;
  Check(GetParam(), [&driver](Command& command) { return driver(command); });
}

INSTANTIATE_TEST_SUITE_P(Traces, CoordinatorTraces, testing::ValuesIn(Texts("coordinator")),
                         NameOf);

}  // namespace
}  // namespace parallelrun::trace
