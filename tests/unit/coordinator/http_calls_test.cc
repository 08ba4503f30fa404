#include "coordinator/http_calls.h"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/http/server/connection.h"
#include "job/node_messages.h"
#include "tests/unit/agent/temp_folder.h"
#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun {
namespace {

struct Line : HttpConnection {
  std::vector<HttpResponse> answers;
  void Start() override {}
  void Respond(HttpResponse response) override { answers.push_back(std::move(response)); }
  void CheckDeadline(SteadyTime) override {}
  std::optional<SteadyTime> WaitsSince() const override { return std::nullopt; }
  void CloseIfIdle() override {}
  void Close(bool) override {}
};

struct HttpCallsTest : testing::Test {
  CoordinatorHarness job;
  SystemClock clock;
  std::shared_ptr<Line> line = std::make_shared<Line>();
  HttpCalls calls{{9, 1, job.limits, "{}"},
                  *job.core,
                  std::move(*LogSink::Open(job.files, "/job/logs")),
                  clock,
                  [] { return std::string("{}"); }};

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
  ExchangeRequest known;
  known.incarnation = job.Join(0);
  EXPECT_EQ(Status("/v1/nodes/0/exchange", Encode(known) + "more"), 400);
  ExchangeRequest unknown = known;
  ++unknown.incarnation.number;
  EXPECT_EQ(Status("/v1/nodes/0/exchange", Encode(unknown) + "more"), 409);
  EXPECT_EQ(Status("/v1/nodes/0/exchange", ""), 409);

  const std::string body = fmt::format(R"({{"protocol": {}, "processes": 1}})", kNodeProtocol + 1);
  EXPECT_EQ(Status("/v1/nodes/0/register", body), 400);
  EXPECT_NE(line->answers.back().body.find(
                fmt::format("this agent speaks protocol {}, its coordinator protocol {}",
                            kNodeProtocol + 1, kNodeProtocol)),
            std::string::npos);
}

TEST_F(HttpCallsTest, AParkedCallEndsWithItsConnection) {
  ExchangeRequest request = job.Request(job.Join(0), 1, 20'000);
  const auto parked = Post("/v1/nodes/0/exchange", Encode(request));
  parked->MarkGone();
  job.Plan(1);
  EXPECT_EQ(job.core->running(), 0U) << "nothing is leased to who has gone";
  Post("/v1/nodes/0/exchange", Encode(request));
  EXPECT_EQ(job.core->running(), 1U);
  ASSERT_EQ(line->answers.size(), 1U);
  EXPECT_EQ(line->answers[0].status, 200);
}

}  // namespace
}  // namespace parallelrun
