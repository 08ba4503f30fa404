// A whole agent with the real Python package, against a scripted coordinator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "agent/agent.h"
#include "base/bytes.h"
#include "base/event_loop.h"
#include "base/http/server.h"
#include "base/http/target.h"
#include "job/node_messages.h"
#include "tests/support/source_folder.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

struct Told {
  job::Finished::Kind kind;
  job::Cause cause;
  uint32_t items = 0;
  std::string rows;
  std::string message;
};

// Leases one file a mini-batch, settles what is finished, and ends the job after the last. Its
// state is the server thread's; read it after Stop.
class ScriptedCoordinator {
 public:
  ScriptedCoordinator(const TempFolder& folder, std::vector<std::string> files)
      : folder_(folder), files_(std::move(files)) {
    auto started = HttpServer::Start(
        loop_, {}, [](const HttpRequest&) { return size_t{16} << 20; },
        [this](const std::shared_ptr<HttpExchange>& exchange) { Handle(exchange); });
    EXPECT_TRUE(started.ok());
    server_ = std::move(*started);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~ScriptedCoordinator() { Stop(); }
  void Stop() {
    loop_.Stop();
    if (thread_.joinable()) thread_.join();
  }
  uint16_t port() const { return port_; }

  std::map<job::BatchId, Told> outcomes;
  std::map<std::string, std::string> logs;
  std::vector<std::string> left;
  std::vector<int> events;
  size_t offered = 0;
  int exchanges = 0;
  int registrations = 0;
  // Options, set before the agent runs.
  int restart_after = -1;       // exchanges until this becomes another epoch
  bool drain_at_start = false;  // SIGTERM to this program once a mini-batch is running
  std::string unauthorized;

 private:
  std::string Work(job::BatchId id) const {
    std::string work;
    Encoder out(work);
    out.U8(1);
    out.U8(0);
    out.U16(0);
    out.U64(id);
    out.U64(id);
    out.U32(1);
    out.Text("");
    out.Text(folder_.path("in"));
    out.Text(files_[id]);
    struct stat info {};
    stat(folder_.path("in/" + files_[id]).c_str(), &info);
    out.U64(static_cast<uint64_t>(info.st_size));
    out.I64(info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec);
    return work;
  }

  void Handle(const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    if (request.Header("Authorization") != "Bearer secret-token") {
      unauthorized = request.path;
      return exchange->Respond(TextResponse(401, "no"));
    }
    if (request.path == "/v1/nodes/0/register") return Register(*exchange);
    if (request.path == "/v1/nodes/0/exchange") return Exchange(exchange);
    if (request.path == "/v1/nodes/0/leave") {
      left.push_back(nlohmann::json::parse(request.body).at("reason"));
      return exchange->Respond(TextResponse(200, "{}"));
    }
    const std::string prefix = "/v1/nodes/0/logs/";
    ASSERT_TRUE(request.path.starts_with(prefix)) << request.path;
    logs[*PercentDecode(request.path.substr(prefix.size()))] += request.body;
    exchange->Respond(TextResponse(200, "{}"));
  }

  void Register(HttpExchange& exchange) {
    ++registrations;
    const nlohmann::json answer{{"runId", "9f"},
                                {"epoch", epoch_},
                                {"incarnation", 1},
                                {"settingsDigest", "00000000000000ff"},
                                {"firstProcess", registrations == 1 ? 0 : 10000},
                                {"leaseSeconds", 10},
                                {"job",
                                 {{"entryScript", "score.py"},
                                  {"arguments", nlohmann::json::array({"--tag", "T"})},
                                  {"outputFolder", folder_.path("out")},
                                  {"outputAction", "AppendRow"},
                                  {"loggingLevel", "INFO"},
                                  {"processes", 2},
                                  {"runTimeoutSeconds", 2},
                                  {"overheadTimeoutSeconds", 60},
                                  {"environment", {{"MODE", "fast"}}},
                                  {"python", "python3"}}}};
    HttpResponse response = TextResponse(200, answer.dump());
    exchange.Respond(std::move(response));
  }

  void Exchange(const std::shared_ptr<HttpExchange>& exchange) {
    ++exchanges;
    const Result<job::ExchangeRequest> request =
        job::DecodeExchangeRequest(exchange->request().body);
    ASSERT_TRUE(request.ok());
    if (exchanges == restart_after) {
      ++epoch_;
      leased_.clear();
    }
    if (request->incarnation.epoch != epoch_) return exchange->Respond(TextResponse(409, "stale"));
    if (released_) {  // a newer request releases the parked one
      Answer(*std::exchange(released_, nullptr), 0, {});
    }
    job::ExchangeReply reply;
    for (const job::ProcessEvent& event : request->events)
      events.push_back(static_cast<int>(event.kind));
    for (const job::OfferedLease& offer : request->offered) {
      ++offered;
      leased_.insert(offer.id);
      reply.adopted.push_back({offer.id, offer.fence, {epoch_, ++fence_}});
    }
    for (const job::Finished& f : request->finished) {
      reply.settled.push_back({f.id, f.fence});
      EXPECT_EQ(f.fence.epoch, epoch_);
      if (f.kind == job::Finished::Kind::kReturned) {
        leased_.erase(f.id);
        continue;
      }
      outcomes[f.id] = {f.kind, f.cause, f.items_succeeded, std::string(f.rows),
                        std::string(f.message)};
    }
    for (const job::HeldLease& held : request->held) {
      if (held.started && drain_at_start) {
        drain_at_start = false;
        kill(getpid(), SIGTERM);
      }
    }
    const bool nothing = reply.settled.empty() && reply.adopted.empty() && Pending() == 0;
    if (nothing && !Over() && request->park_ms > 0) {
      released_ = exchange;
      loop_.After(milliseconds(request->park_ms), [this, exchange] {
        if (released_ == exchange) Answer(*std::exchange(released_, nullptr), 0, {});
      });
      return;
    }
    Answer(*exchange, request->want, std::move(reply));
  }

  bool Over() const { return outcomes.size() == files_.size(); }
  size_t Pending() const {
    size_t count = 0;
    for (job::BatchId id = 0; id < files_.size(); ++id) {
      if (!leased_.contains(id) && !outcomes.contains(id)) ++count;
    }
    return count;
  }

  void Answer(HttpExchange& exchange, uint32_t want, job::ExchangeReply reply) {
    reply.epoch = epoch_;
    if (Over()) reply.directive = job::Directive::kFinish;
    std::deque<std::string> works;
    for (job::BatchId id = 0; id < files_.size() && works.size() < want; ++id) {
      if (outcomes.contains(id) || !leased_.insert(id).second) continue;
      works.push_back(Work(id));
      reply.leased.push_back({id, {epoch_, ++fence_}, id, works.back()});
    }
    HttpResponse response = TextResponse(200, job::Encode(reply));
    exchange.Respond(std::move(response));
  }

  const TempFolder& folder_;
  const std::vector<std::string> files_;
  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
  uint32_t epoch_ = 1;
  uint64_t fence_ = 0;
  std::set<job::BatchId> leased_;
  std::shared_ptr<HttpExchange> released_;
  std::thread thread_;
};

constexpr char kScript[] = R"(
import os, sys, time, helper

def init():
    print("arguments", sys.argv[1:], os.environ["MODE"], os.environ["AZUREML_BI_OUTPUT_PATH"])
    with open("logs/mine.txt", "a") as f:
        f.write("a log of my own\n")

def run(mini_batch):
    rows = []
    for path in mini_batch:
        name = os.path.basename(path)
        text = open(path).read()
        if text == "raise": raise ValueError("cannot read " + name)
        if text == "exit": os._exit(5)
        if text == "hang": time.sleep(60)
        if text == "slow": time.sleep(1.5)
        rows.append(helper.shout(name))
    return rows
)";

class AgentEndToEnd : public ::testing::Test {
 protected:
  AgentEndToEnd() {
    folder_.Write("code/score.py", kScript);
    folder_.Write("code/helper.py", "def shout(name): return name.upper()\n");
  }
  std::vector<std::string> Files(int count, const std::map<int, std::string>& special = {}) {
    std::vector<std::string> names;
    for (int i = 0; i < count; ++i) {
      names.push_back("f" + std::to_string(i));
      const auto it = special.find(i);
      folder_.Write("in/" + names.back(), it == special.end() ? "fine" : it->second);
    }
    return names;
  }
  int Run(ScriptedCoordinator& coordinator, Duration grace = seconds(10)) {
    AgentConfig config;
    config.url = "http://127.0.0.1:" + std::to_string(coordinator.port());
    config.token = "secret-token";
    config.code_folder = folder_.path("code");
    config.work_folder = folder_.path("work");
    config.python_path = SourceFolder() + "worker-image/python";
    options_.drain_grace = grace;
    const int code = RunAgent(config, options_);
    coordinator.Stop();
    return code;
  }
  TempFolder folder_;
  AgentOptions options_;
};

TEST_F(AgentEndToEnd, RunsAJob) {
  ScriptedCoordinator coordinator(folder_, Files(200, {{3, "raise"}, {50, "exit"}}));
  EXPECT_EQ(Run(coordinator), kAgentFinished);
  ASSERT_THAT(coordinator.outcomes, SizeIs(200));
  for (const auto& [id, outcome] : coordinator.outcomes) {
    if (id == 3 || id == 50) continue;
    EXPECT_EQ(outcome.kind, job::Finished::Kind::kSucceeded) << id << " " << outcome.message;
    EXPECT_EQ(outcome.rows, "F" + std::to_string(id) + "\n");
    EXPECT_EQ(outcome.items, 1U);
  }
  const Told& raised = coordinator.outcomes[3];
  EXPECT_EQ(raised.cause, job::Cause::kRun);
  EXPECT_THAT(raised.message, HasSubstr("ValueError: cannot read f3 (score.py:"));
  const Told& exited = coordinator.outcomes[50];
  EXPECT_EQ(exited.cause, job::Cause::kProcessEnded);
  EXPECT_THAT(exited.message, HasSubstr("exited with status 5"));
  EXPECT_THAT(coordinator.left, ::testing::ElementsAre("finished"));
  EXPECT_EQ(coordinator.unauthorized, "");
  EXPECT_THAT(coordinator.logs["user/stdout/0/process000.stdout.txt"],
              HasSubstr("arguments ['--tag', 'T'] fast " + folder_.path("out")));
  // Which process does what is chance: the one that ends with "exit" may have done nothing else.
  EXPECT_TRUE(std::any_of(coordinator.logs.begin(), coordinator.logs.end(), [](const auto& log) {
    return log.first.starts_with("sys/node/0/process") &&
           log.second.find(": done, total 1, ") != std::string::npos;
  }));
  EXPECT_THAT(coordinator.logs["user/files/0/mine.txt"], HasSubstr("a log of my own"));
  EXPECT_TRUE(std::any_of(coordinator.logs.begin(), coordinator.logs.end(), [](const auto& log) {
    return log.first.starts_with("user/error/0/") &&
           log.second.find("ValueError") != std::string::npos;
  }));
}

TEST_F(AgentEndToEnd, ATimeOutFailsTheAttempt) {
  ScriptedCoordinator coordinator(folder_, Files(4, {{1, "hang"}}));
  EXPECT_EQ(Run(coordinator), kAgentFinished);
  EXPECT_EQ(coordinator.outcomes[1].cause, job::Cause::kRunTimeout);
  EXPECT_THAT(coordinator.outcomes[1].message, HasSubstr("run() took longer than 2.0s"));
  EXPECT_EQ(coordinator.outcomes[2].kind, job::Finished::Kind::kSucceeded);
}

TEST_F(AgentEndToEnd, SurvivesAnotherCoordinator) {
  ScriptedCoordinator coordinator(folder_, Files(300));
  coordinator.restart_after = 5;
  EXPECT_EQ(Run(coordinator), kAgentFinished);
  EXPECT_EQ(coordinator.registrations, 2);
  EXPECT_THAT(coordinator.outcomes, SizeIs(300));
}

TEST_F(AgentEndToEnd, AScriptThatIsNotThereEndsTheNode) {
  std::filesystem::remove(folder_.path("code/score.py"));
  ScriptedCoordinator coordinator(folder_, Files(4));
  EXPECT_EQ(Run(coordinator), kAgentGaveUp);
  EXPECT_THAT(coordinator.events,
              ::testing::Contains(static_cast<int>(job::ProcessEvent::Kind::kScriptUnusable)));
}

TEST_F(AgentEndToEnd, SigtermDrains) {
  ScriptedCoordinator coordinator(folder_, Files(8, {{0, "slow"}, {1, "slow"}}));
  coordinator.drain_at_start = true;
  EXPECT_EQ(Run(coordinator), kAgentDrained);
  EXPECT_EQ(coordinator.outcomes[0].kind, job::Finished::Kind::kSucceeded);
  EXPECT_LT(coordinator.outcomes.size(), 8U);
  EXPECT_THAT(coordinator.left, ::testing::ElementsAre("drained"));
}

// As a pod's probe sees it.
TEST_F(AgentEndToEnd, TheNodeIsReadyOnceAProcessHasFinishedInit) {
  options_.ready_file = folder_.path("ready");
  folder_.Write("code/score.py", R"(
import os
def init(): assert not os.path.exists("../ready"), "ready too soon"
def run(mini_batch):
    assert os.path.exists("../ready"), "not ready at work"
    return mini_batch
)");
  ScriptedCoordinator coordinator(folder_, Files(1));
  EXPECT_EQ(Run(coordinator), kAgentFinished);
  EXPECT_EQ(coordinator.outcomes[0].kind, job::Finished::Kind::kSucceeded)
      << coordinator.outcomes[0].message;
}

// Its pod is not in error, and the probe that waits for it has not failed.
TEST_F(AgentEndToEnd, ANodeThatIsToldToGoBeforeItIsReadyEndsWell) {
  options_.ready_file = folder_.path("ready");
  options_.farewell = folder_.path("said");
  options_.drained_exit = 0;
  folder_.Write("said", "");
  folder_.Write("code/score.py", R"(
import os, signal, time
def init():
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(600)
def run(mini_batch): return mini_batch
)");
  ScriptedCoordinator coordinator(folder_, Files(1));
  EXPECT_EQ(Run(coordinator, seconds(0)), 0);
  EXPECT_TRUE(folder_.Exists("ready"));
  EXPECT_THAT(folder_.Read("said"), ::testing::StartsWith("drained"));
}

TEST_F(AgentEndToEnd, ANodeWhoseInitFailsIsNeverReadyAndSaysWhy) {
  options_.ready_file = folder_.path("ready");
  options_.farewell = folder_.path("said");
  folder_.Write("said", "");
  folder_.Write("code/score.py", "def init(): open('model.bin')\ndef run(m): return m\n");
  ScriptedCoordinator coordinator(folder_, Files(1));
  EXPECT_EQ(Run(coordinator), kAgentGaveUp);
  EXPECT_FALSE(folder_.Exists("ready"));
  EXPECT_THAT(folder_.Read("said"), HasSubstr("the last one: FileNotFoundError"));
  EXPECT_THAT(folder_.Read("said"), HasSubstr("score.py:1"));
}

TEST_F(AgentEndToEnd, AWrongTokenEndsTheAgent) {
  ScriptedCoordinator coordinator(folder_, Files(1));
  AgentConfig config;
  config.url = "http://127.0.0.1:" + std::to_string(coordinator.port());
  config.token = "wrong";
  config.code_folder = folder_.path("code");
  config.work_folder = folder_.path("work");
  EXPECT_EQ(RunAgent(config, {}), kAgentGaveUp);
}

TEST_F(AgentEndToEnd, ATakenWorkFolderIsRefused) {
  folder_.Write("work/x", "x");
  ScriptedCoordinator coordinator(folder_, Files(1));
  EXPECT_EQ(Run(coordinator), kAgentCannotStart);
}

}  // namespace
}  // namespace parallelrun::agent
