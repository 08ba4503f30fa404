#include "coordinator/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "coordinator/access.h"
#include "job/node_messages.h"
#include "ledger/log_format.h"
#include "tests/support/fault_files.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr char kKey[] = "a key";

// A job of ranks on a disk in memory.
struct ServedJob {
  explicit ServedJob(const std::string& output_file = "") {
    files.SetReserveWorks(false);  // else what was reserved is still there to be written to
    ledger::LedgerOptions ledger_options;
    ledger_options.state_folder = "/job/state";
    ledger_options.output_folder = "/job/output";
    ledger_options.output_file = output_file;
    ledger_options.nonce = 1;
    ledger_options.new_run_id = 9;
    EXPECT_TRUE(files.MakeFolders("/job/output").ok());
    auto claimed = ledger::Ledger::Claim(
        files, ledger_options,
        [](const job::Record&, const job::Place&, const job::Place&) { return Status(); });
    EXPECT_TRUE(claimed.ok());
    ledger = std::move(*claimed);
    const job::SettingsRecord settings{1, 1, 2, "uid", "{}", "{}"};
    EXPECT_TRUE(ledger->Begin(settings, std::nullopt).ok());
    EXPECT_TRUE(state.Apply(settings, {}, {}).ok());
    auto sink = LogSink::Open(files, "/job/logs");
    EXPECT_TRUE(sink.ok());
    folder.emplace(sink->folder());
    logs.emplace(std::move(*sink));
    options.state_folder = ledger_options.state_folder;
    options.output_folder = "/job/output";
    options.key = kKey;
    options.agent_job = "{}";
  }
  void PlanRanks(uint64_t count) {
    plan::PlanInput ranks;
    ranks.name = "ranks";
    ranks.kind = plan::PlanKind::kRanks;
    ranks.batch_size = count;
    options.inputs = {ranks};
  }

  FaultFiles files;
  std::unique_ptr<ledger::Ledger> ledger;
  job::JobState state;
  std::optional<LogFolder> folder;
  std::optional<LogWriter> logs;
  ServerOptions options;
};

// One connection to a loopback port, a call at a time.
class Caller {
 public:
  explicit Caller(uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  void Send(const std::string& call, const std::string& role, const std::string& body) const {
    const std::string text = fmt::format(
        "{} HTTP/1.1\r\nHost: job\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{}",
        call, RoleToken(kKey, role), body.size(), body);
    EXPECT_EQ(send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Status and body.
  std::pair<int, std::string> Receive() const {
    std::string got;
    std::array<char, 65536> buffer{};
    for (;;) {
      const size_t end = got.find("\r\n\r\n");
      const size_t length = got.find("Content-Length: ");
      if (end != std::string::npos && length < end) {
        const size_t size = std::stoul(got.substr(length + 16));
        if (got.size() >= end + 4 + size) {
          return {std::stoi(got.substr(9, 3)), got.substr(end + 4, size)};
        }
      }
      const ssize_t n = recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (n <= 0) return {0, got};
      got.append(buffer.data(), static_cast<size_t>(n));
    }
  }
  std::pair<int, std::string> Call(const std::string& call, const std::string& role,
                                   const std::string& body = "") const {
    Send(call, role, body);
    return Receive();
  }

 private:
  const Fd fd_;
};

int Listen(uint16_t& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(fd, generic, size), 0);
  EXPECT_EQ(listen(fd, 16), 0);
  EXPECT_EQ(getsockname(fd, generic, &size), 0);
  port = ntohs(address.sin_port);
  return fd;
}

// What is planned waits in memory until it is on the disk: a plan of millions of files would
// outgrow a coordinator whose disk is full.
TEST(CoordinatorServerTest, ThePlannerWaitsForADiskThatIsFull) {
  constexpr uint64_t kChunks = 40;
  ServedJob job;
  job.files.SetCapacity(job.files.used());
  job.options.ownerless_limit = seconds(1);  // ends the run
  job.PlanRanks(kChunks * job::RankChunk::kMost);
  CoordinatorServer server(std::move(job.options), job.files, *job.ledger, job.state, *job.folder,
                           *job.logs);
  const auto exit = server.Run();
  ASSERT_TRUE(exit.ok()) << exit.error().message;
  EXPECT_EQ(*exit, CoordinatorExit::kDrained);
  EXPECT_LE(job.state.counts().planned, kChunks / 2 * job::RankChunk::kMost);
  EXPECT_TRUE(job.logs->Finish(std::chrono::hours(1)));
  EXPECT_TRUE(server.EndThreads(std::chrono::hours(1)));
}

// A job whose log volume hangs from its first upload until all is settled.
void RunOnAHangingLogVolume(FaultFiles& files, uint16_t port) {
  const Caller agent(port);
  const auto [status, text] = agent.Call(
      "POST /v1/nodes/0/register", "node:0",
      fmt::format(R"({{"protocol": {}, "processes": 1, "host": "a"}})", job::kNodeProtocol));
  ASSERT_EQ(status, 200) << text;
  const json registered = json::parse(text);
  job::ExchangeRequest request;
  request.incarnation = {registered["epoch"].get<uint32_t>(),
                         registered["incarnation"].get<uint32_t>()};
  request.settings_digest =
      std::stoull(registered["settingsDigest"].get<std::string>(), nullptr, 16);

  const std::string upload = "PUT /v1/nodes/0/logs/user/stdout/0/a.txt?offset=";
  {
    const Caller uploader(port);
    files.Hang("/job/logs");
    uploader.Send(upload + "0", "node:0", "one\n");
    files.AwaitHanging();
  }  // its time is up

  // Leases, results and progress go on.
  for (size_t settled = 0; settled < 3;) {
    request.want = 1;
    request.park_ms = 1000;
    const auto [code, bytes] =
        agent.Call("POST /v1/nodes/0/exchange", "node:0", job::Encode(request));
    ASSERT_EQ(code, 200) << bytes;
    const Result<job::ExchangeReply> reply = job::DecodeExchangeReply(bytes);
    ASSERT_TRUE(reply.ok()) << reply.error().message;
    settled += reply->settled.size();
    request.finished.clear();
    for (const job::Leased& leased : reply->leased) {
      job::Finished done;
      done.id = leased.id;
      done.fence = leased.fence;
      done.kind = job::Finished::Kind::kSucceeded;
      done.items_succeeded = 1;
      request.finished.push_back(done);
    }
  }
  const auto progress = json::parse(Caller(port).Call("GET /v1/progress", "viewer").second);
  EXPECT_EQ(progress["miniBatches"]["succeeded"], 3);
  EXPECT_EQ(Caller(port).Call(upload + "0", "node:0", "one\n").first, 503);

  files.Hang("");
  // Each is sent again until it is taken.
  for (const auto& [offset, bytes] : {std::pair{"0", "one\n"}, {"4", "two\n"}}) {
    int code = 503;
    while (code == 503) code = Caller(port).Call(upload + offset, "node:0", bytes).first;
    EXPECT_EQ(code, 200);
  }
  json goodbye = registered;
  goodbye["strayFiles"] = {{"count", 2}, {"first", {"own/b.csv", "own/a.csv"}}};
  const auto left = agent.Call("POST /v1/nodes/0/leave", "node:0", goodbye.dump());
  EXPECT_EQ(left.first, 200);
}

TEST(CoordinatorServerTest, AJobGoesOnWhileItsLogVolumeHangsAndNothingIsWrittenTwice) {
  ServedJob job;
  job.PlanRanks(3);
  job.options.coordinator.rules.append_row = false;  // a run() without rows is enough
  uint16_t port = 0;
  job.options.http.listen_fd = Listen(port);
  CoordinatorServer server(std::move(job.options), job.files, *job.ledger, job.state, *job.folder,
                           *job.logs);
  Thread agent("agent", [&] { RunOnAHangingLogVolume(job.files, port); });
  const auto exit = server.Run();
  agent.join();
  ASSERT_TRUE(exit.ok()) << exit.error().message;
  EXPECT_EQ(*exit, CoordinatorExit::kSucceeded) << job.state.verdict()->message;
  const json progress = json::parse(server.Progress());
  EXPECT_THAT(progress["lateWarning"].get<std::string>(),
              testing::StartsWith("the script wrote 2 files into its working folder"));
  EXPECT_EQ(progress["warning"], progress["lateWarning"]);
  EXPECT_TRUE(job.logs->Finish(std::chrono::hours(1)));
  EXPECT_TRUE(server.EndThreads(std::chrono::hours(1)));
  EXPECT_EQ(job.files.Contents("/job/logs/user/stdout/0/a.txt"), "one\ntwo\n");
  EXPECT_TRUE(job.files.Has("/job/logs/job_result.txt"));
}

// A node that registers, and what it may say next.
job::ExchangeRequest Join(const Caller& agent, uint32_t node, std::string* registered = nullptr) {
  const auto [status, text] = agent.Call(
      fmt::format("POST /v1/nodes/{}/register", node), fmt::format("node:{}", node),
      fmt::format(R"({{"protocol": {}, "processes": 1, "host": "a"}})", job::kNodeProtocol));
  EXPECT_EQ(status, 200) << text;
  if (registered != nullptr) *registered = text;
  const json told = json::parse(text);
  job::ExchangeRequest request;
  request.incarnation = {told["epoch"].get<uint32_t>(), told["incarnation"].get<uint32_t>()};
  request.settings_digest = std::stoull(told["settingsDigest"].get<std::string>(), nullptr, 16);
  return request;
}

// The log of the ledger hangs while the plan is to be read from it: who waits for a lease waits on,
// and everybody else is answered.
void RunOnAHangingLedger(FaultFiles& files, const std::string& log, uint16_t port) {
  const Caller viewer(port);
  for (uint64_t planned = 0; planned < 3;) {
    const json progress = json::parse(viewer.Call("GET /v1/progress", "viewer").second);
    planned = progress["miniBatches"]["pending"].get<uint64_t>();
  }
  const Caller first(port);
  const Caller second(port);
  job::ExchangeRequest wants = Join(first, 0);
  job::ExchangeRequest renews = Join(second, 1);
  wants.want = 1;
  wants.park_ms = 20'000;
  // Once it is known that this is the newest epoch, answers wait for no look.
  EXPECT_EQ(second.Call("POST /v1/nodes/1/exchange", "node:1", job::Encode(renews)).first, 200);
  files.Hang(log);
  first.Send("POST /v1/nodes/0/exchange", "node:0", job::Encode(wants));
  files.AwaitHanging();

  EXPECT_EQ(viewer.Call("GET /v1/progress", "viewer").first, 200);
  const auto [code, bytes] =
      second.Call("POST /v1/nodes/1/exchange", "node:1", job::Encode(renews));
  ASSERT_EQ(code, 200) << bytes;
  EXPECT_TRUE(job::DecodeExchangeReply(bytes)->leased.empty());

  files.Hang("");
  const std::string answer = first.Receive().second;
  const Result<job::ExchangeReply> reply = job::DecodeExchangeReply(answer);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_EQ(reply->leased.size(), 1U);
  EXPECT_EQ(
      viewer.Call("PUT /v1/control", "operator", R"({"generation": 1, "cancel": true})").first,
      200);
}

TEST(CoordinatorServerTest, WhileTheLedgerHangsEverybodyIsAnsweredButWhoWaitsForALease) {
  ServedJob job;
  job.PlanRanks(3);
  job.options.coordinator.nodes = 2;
  job.options.coordinator.look = std::chrono::hours(1);
  job.options.leave_limit = seconds(0);
  uint16_t port = 0;
  job.options.http.listen_fd = Listen(port);
  CoordinatorServer server(std::move(job.options), job.files, *job.ledger, job.state, *job.folder,
                           *job.logs);
  Thread agents("agents", [&] {
    RunOnAHangingLedger(job.files, "/job/state/epochs/" + ledger::LogName(1), port);
  });
  const auto exit = server.Run();
  agents.join();
  ASSERT_TRUE(exit.ok()) << exit.error().message;
  EXPECT_EQ(*exit, CoordinatorExit::kFailed);
  EXPECT_TRUE(job.logs->Finish(std::chrono::hours(1)));
  EXPECT_TRUE(server.EndThreads(std::chrono::hours(1)));
}

TEST(CoordinatorServerTest, AnOutputFolderThatHangsIsLeftWithoutKeepingAnybodyWaiting) {
  ServedJob job("rows.txt");
  const std::string token = job.ledger->token_path();
  ASSERT_TRUE(job.files.Has(token));
  job.PlanRanks(1);
  uint16_t port = 0;
  job.options.http.listen_fd = Listen(port);
  CoordinatorServer server(std::move(job.options), job.files, *job.ledger, job.state, *job.folder,
                           *job.logs);
  Thread caller("caller", [&] {
    const Caller viewer(port);
    job.files.Hang("/job/output");
    EXPECT_EQ(
        viewer.Call("PUT /v1/control", "operator", R"({"generation": 1, "drain": true})").first,
        200);
    job.files.AwaitHanging();
    EXPECT_EQ(viewer.Call("GET /v1/progress", "viewer").first, 200);
    job.files.Hang("");
  });
  const auto exit = server.Run();
  caller.join();
  ASSERT_TRUE(exit.ok()) << exit.error().message;
  EXPECT_EQ(*exit, CoordinatorExit::kDrained);
  EXPECT_TRUE(job.logs->Finish(std::chrono::hours(1)));
  EXPECT_TRUE(server.EndThreads(std::chrono::hours(1)));
  EXPECT_FALSE(job.files.Has(token));
}

}  // namespace
}  // namespace parallelrun::coordinator
