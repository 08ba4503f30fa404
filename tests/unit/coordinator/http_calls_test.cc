#include "coordinator/http_calls.h"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/http/server/connection.h"
#include "base/version.h"
#include "coordinator/side_uploads.h"
#include "job/node_messages.h"
#include "ledger/state_notes.h"
#include "tests/support/memory_write_store.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

struct Line : HttpConnection {
  std::vector<HttpResponse> answers;
  void Start() override {}
  void Respond(HttpResponse response) override { answers.push_back(std::move(response)); }
  void Begin(HttpResponse) override {}
  void Add(std::string) override {}
  void End() override {}
  size_t waiting() const override { return 0; }
  void CheckDeadline(SteadyTime) override {}
  std::optional<SteadyTime> WaitsSince() const override { return std::nullopt; }
  void CloseIfIdle() override {}
  void Close(bool) override {}
};

struct HttpCallsTest : testing::Test {
  HttpCallsTest() { job.core->OnLooked(clock.Now(), {}, clock.Now()); }

  static CoordinatorLimits Limits() {
    CoordinatorLimits limits;
    limits.look = std::chrono::hours(1);  // here nobody looks again
    return limits;
  }

  CoordinatorHarness job{Limits()};
  LogWriter logs{std::move(*LogSink::Open(job.files, "/job/logs"))};
  SystemClock clock;
  std::shared_ptr<Line> line = std::make_shared<Line>();
  EventLoop loop;
  HttpCalls calls{{9, 1, job.limits, "{}"},
                  *job.core,
                  logs,
                  loop,
                  clock,
                  [] { return std::string("{}"); },
                  [](uint64_t after) { return fmt::format("behind {}", after); }};

  std::shared_ptr<HttpExchange> Post(const std::string& path, const std::string& body) {
    HttpRequest request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    auto exchange = std::make_shared<HttpExchange>(std::move(request), line);
    calls.Handle(exchange);
    return exchange;
  }
  int Status(const std::string& path, const std::string& body) {
    Post(path, body);
    return line->answers.empty() ? 0 : line->answers.back().status;
  }
};

// Those of another release may say an exchange in another way, but its incarnation first.
TEST_F(HttpCallsTest, AnAgentOfAnotherProtocolHearsThatAndNoDecodingError) {
  job::ExchangeRequest known;
  known.incarnation = job.Join(0);
  EXPECT_EQ(Status("/v1/nodes/0/exchange", job::Encode(known) + "more"), 400);
  job::ExchangeRequest unknown = known;
  ++unknown.incarnation.number;
  EXPECT_EQ(Status("/v1/nodes/0/exchange", job::Encode(unknown) + "more"), 409);
  EXPECT_EQ(Status("/v1/nodes/0/exchange", ""), 409);

  const std::string body =
      fmt::format(R"({{"protocol": {}, "processes": 1}})", job::kNodeProtocol + 1);
  EXPECT_EQ(Status("/v1/nodes/0/register", body), 400);
  EXPECT_NE(line->answers.back().body.find(
                fmt::format("this agent speaks protocol {}, its coordinator protocol {}",
                            job::kNodeProtocol + 1, job::kNodeProtocol)),
            std::string::npos);
  EXPECT_NE(line->answers.back().body.find("one that does not say"), std::string::npos);
  EXPECT_EQ(Status("/v1/nodes/0/register", R"({"protocol": 99, "release": "9.8.7"})"), 400);
  EXPECT_NE(
      line->answers.back().body.find(std::string("releases of ParallelRun, 9.8.7 and ") + kVersion),
      std::string::npos);
}

TEST_F(HttpCallsTest, UrlsOfSideInputsAreThoseOfJobsWhoseNodesHaveNoKeys) {
  EXPECT_EQ(Status("/v1/nodes/0/side-input-urls", "model"), 400);
  EXPECT_EQ(Status("/v1/nodes/0/side-input-urls", R"({"sideInput": "model"})"), 400);
  EXPECT_EQ(Status("/v1/nodes/0/side-input-urls", R"({"sideInput": "model", "first": 0})"), 404);
  // Nor uploads where side files go to a volume.
  EXPECT_EQ(Status("/v1/nodes/0/side-files", "files"), 400);
  const std::string file =
      R"({"name": "a", "bytes": 1, "sha256": ")" + std::string(64, 'a') + "\"}";
  EXPECT_EQ(Status("/v1/nodes/0/side-files", R"({"miniBatch": 0, "files": [)" + file + "]}"), 404);
}

TEST_F(HttpCallsTest, UploadsOfSideFilesAreThoseOfMiniBatchesThatTheNodeHolds) {
  MemoryWriteStore store;
  const auto notes = ledger::MakeFolderNotes(job.files, "/job/state");
  SideUploads uploads({{&store, notes.get(), "", 9, {}}, {9, 1}, 1, seconds(60)}, loop);
  HttpCalls with(
      {9, 1, job.limits, "{}", nullptr, &uploads}, *job.core, logs, loop, clock,
      [] { return std::string("{}"); }, [](uint64_t) { return std::string(); });
  const auto ask = [&](uint32_t node) {
    HttpRequest request;
    request.method = "POST";
    request.path = fmt::format("/v1/nodes/{}/side-files", node);
    request.body = R"({"miniBatch": 0, "files": [{"name": "a", "bytes": 1, "sha256": ")" +
                   std::string(64, 'a') + "\"}]}";
    const size_t before = line->answers.size();
    with.Handle(std::make_shared<HttpExchange>(std::move(request), line));
    while (line->answers.size() == before) {
      loop.After(milliseconds(1), [this] { loop.Stop(); });
      loop.Run();
    }
    return line->answers.back().status;
  };
  job.Plan(1);
  EXPECT_EQ(ask(0), 409);
  const job::LeaseName lease = job.Lease(0, job.Join(0));
  EXPECT_EQ(lease.id, 0u);
  EXPECT_EQ(ask(0), 200);
  EXPECT_EQ(ask(1), 409) << "another node holds it";
  EXPECT_EQ(store.uploads(), 1u);
}

TEST_F(HttpCallsTest, AParkedCallEndsWithItsConnection) {
  job::ExchangeRequest request = job.Request(job.Join(0), 1, 20'000);
  const auto parked = Post("/v1/nodes/0/exchange", job::Encode(request));
  parked->MarkGone();
  job.Plan(1);
  EXPECT_EQ(job.core->running(), 0U) << "nothing is leased to who has gone";
  Post("/v1/nodes/0/exchange", job::Encode(request));
  EXPECT_EQ(job.core->running(), 1U);
  ASSERT_EQ(line->answers.size(), 1U);
  EXPECT_EQ(line->answers[0].status, 200);
}

TEST_F(HttpCallsTest, FailuresAreAskedForBehindANumber) {
  HttpRequest request;
  request.path = "/v1/failures";
  for (const char* const query : {"after=7", "", "after=x", "after=-1"}) {
    request.query = query;
    calls.Handle(std::make_shared<HttpExchange>(HttpRequest(request), line));
  }
  ASSERT_EQ(line->answers.size(), 4U);
  EXPECT_EQ(line->answers[0].status, 200);
  EXPECT_EQ(line->answers[0].body, "behind 7");
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(line->answers[i].status, 400);
}

struct HttpUploadTest : HttpCallsTest {
  ~HttpUploadTest() override { job.files.Hang(""); }

  std::shared_ptr<HttpExchange> Put(uint32_t node, const std::string& query,
                                    const std::string& body) {
    auto exchange = std::make_shared<HttpExchange>(Request(node, query, body), line);
    calls.Handle(exchange);
    return exchange;
  }
  static HttpRequest Request(uint32_t node, const std::string& query, const std::string& body) {
    HttpRequest request;
    request.method = "PUT";
    request.path = fmt::format("/v1/nodes/{0}/logs/user/stdout/{0}/a.txt", node);
    request.query = query;
    request.body = body;
    return request;
  }
  // All that was taken is written, and what it was answered is said.
  void Finish() {
    ASSERT_TRUE(logs.Finish(std::chrono::hours(1)));
    loop.Post([this] { loop.Stop(); });
    loop.Run();
  }
  std::string Log(uint32_t node) const {
    const std::string path = fmt::format("/job/logs/user/stdout/{}/a.txt", node);
    return job.files.Has(path) ? job.files.Contents(path) : "";
  }
};

TEST_F(HttpUploadTest, AnUploadIsAnsweredWhenItIsWritten) {
  Put(0, "offset=0", "hello\n");
  EXPECT_TRUE(line->answers.empty()) << "only the loop answers";
  Finish();
  ASSERT_EQ(line->answers.size(), 1U);
  EXPECT_EQ(line->answers[0].status, 200);
  EXPECT_EQ(Log(0), "hello\n");
  Put(0, "offset=x", "");
  ASSERT_EQ(line->answers.size(), 2U);
  EXPECT_EQ(line->answers[1].status, 400);
}

TEST_F(HttpUploadTest, AVolumeThatHangsHoldsUpUploadsOnly) {
  job.files.Hang("/job/logs");
  const auto first = Put(0, "offset=0", "one\n");
  job.files.AwaitHanging();
  const auto waits = Put(1, "offset=0", "other\n");
  // Leases and results go on.
  job.Plan(1);
  const job::Incarnation incarnation = job.Join(0);
  const job::LeaseName lease = job.Lease(0, incarnation);
  job.Report(0, incarnation, lease);
  job.Sync();
  EXPECT_EQ(job.state.counts().succeeded, 1U);

  // Its node times out, and is refused before its body is read while the first one hangs.
  first->MarkGone();
  waits->MarkGone();
  const auto refused = calls.RefuseEarly(Request(0, "offset=0", ""));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 503);
  EXPECT_FALSE(calls.RefuseEarly(Request(2, "offset=0", "")).has_value());
  HttpRequest exchange = Request(0, "", "");
  exchange.path = "/v1/nodes/0/exchange";
  EXPECT_FALSE(calls.RefuseEarly(exchange).has_value());
  Put(0, "offset=0", "one\n");  // two at once have come through the gate
  ASSERT_EQ(line->answers.size(), 1U);
  EXPECT_EQ(line->answers[0].status, 503);

  job.files.Hang("");
  Finish();
  EXPECT_EQ(Log(0), "one\n");
  EXPECT_EQ(Log(1), "") << "passed over: its node sends it again";
}

TEST_F(HttpCallsTest, AStateFolderThatNobodyCouldLookAtForLongIsTold) {
  const auto probe = [this] {
    HttpRequest request;
    request.method = "GET";
    request.path = "/healthz";
    calls.HandlePublic(std::make_shared<HttpExchange>(std::move(request), line));
    return line->answers.back().status;
  };
  const SystemClock now;
  job.core->OnLooked(now.Now(), parallelrun::Status(), now.Now());
  EXPECT_EQ(probe(), 200);
  job.core->OnLooked(now.Now() - std::chrono::minutes(31), parallelrun::Status(), now.Now());
  EXPECT_EQ(probe(), 503);
  EXPECT_NE(line->answers.back().body.find("volume"), std::string::npos);
}

}  // namespace
}  // namespace parallelrun::coordinator
