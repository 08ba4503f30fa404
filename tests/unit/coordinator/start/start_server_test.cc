#include "coordinator/start/start_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/http/client.h"
#include "coordinator/access.h"

namespace parallelrun::coordinator {
namespace {

using ::testing::HasSubstr;

constexpr Duration kLimit = seconds(20);

// A socket that listens on loopback, as a coordinator inherits one.
struct Listening {
  Listening() : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(fd.get(), generic, size), 0);
    EXPECT_EQ(listen(fd.get(), 16), 0);
    EXPECT_EQ(getsockname(fd.get(), generic, &size), 0);
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  HttpServerOptions Options() const {
    HttpServerOptions options;
    options.listen_fd = fd.get();
    return options;
  }
  Result<HttpResponse> Get(const std::string& path, const std::string& token = "") const {
    HttpClientOptions options;
    options.base_url = url;
    if (!token.empty()) options.token = [token] { return token; };
    const Result<std::unique_ptr<HttpClient>> client = HttpClient::Make(std::move(options));
    if (!client.ok()) return client.error();
    HttpRequest request;
    request.path = path;
    return (*client)->Send(std::move(request), kLimit);
  }

  Fd fd;
  std::string url;
};

StartServer::Options At(const Listening& calls) {
  StartServer::Options options;
  options.http = calls.Options();
  options.key = "key";
  options.open_after = Duration(0);
  return options;
}

TEST(StartServerTest, TellsWhatItDoesAndHowFarItIs) {
  const Listening calls;
  const Listening metrics;
  StartServer::Options options = At(calls);
  options.metrics_http = metrics.Options();
  StartServer server(options);
  server.Begin("reads the ledger", "records");
  server.Begin("compares the files", "files");
  for (int i = 0; i < 3; ++i) server.Step();

  const auto progress = calls.Get("/v1/progress", RoleToken("key", "viewer"));
  ASSERT_TRUE(progress.ok()) << progress.error().message;
  EXPECT_EQ(progress->status, 503);
  EXPECT_THAT(progress->body, HasSubstr("it compares the files, 3 files so far"));
  for (const Listening* port : {&calls, &metrics}) {
    const auto health = port->Get("/healthz");
    ASSERT_TRUE(health.ok());
    EXPECT_EQ(health->status, 200);
    const auto ready = port->Get("/readyz");
    ASSERT_TRUE(ready.ok());
    EXPECT_EQ(ready->status, 503);
  }
}

TEST(StartServerTest, SaysNothingToStrangers) {
  const Listening calls;
  const StartServer server(At(calls));
  const auto answer = calls.Get("/v1/progress", "guessed");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status, 401);
}

TEST(StartServerTest, AStartThatHangsDoesNotLive) {
  const Listening calls;
  StartServer::Options options = At(calls);
  options.stall_limit = Duration(-1);  // over at once
  const StartServer server(options);
  const auto health = calls.Get("/healthz");
  ASSERT_TRUE(health.ok());
  EXPECT_EQ(health->status, 503);
  EXPECT_THAT(health->body, HasSubstr("does a volume hang?"));
  const auto call = calls.Get("/v1/progress", RoleToken("key", "viewer"));
  ASSERT_TRUE(call.ok());
  EXPECT_EQ(call->status, 500) << "nodes would wait for it for ever";
}

// What was asked before the ports were opened is answered by who serves in the end.
TEST(StartServerTest, AStartOfAMomentIsNotSeen) {
  const Listening calls;
  std::future<Result<HttpResponse>> asked;
  {
    StartServer::Options options = At(calls);
    options.open_after = std::chrono::hours(1);
    const StartServer server(options);
    asked = std::async(std::launch::async, [&] { return calls.Get("/v1/progress"); });
  }
  EventLoop loop;
  HttpServerOptions options = calls.Options();
  options.listen_fd = dup(calls.fd.get());
  std::unique_ptr<HttpServer> server;
  auto served = HttpServer::Start(
      loop, options, [](const HttpRequest&) { return size_t{0}; },
      [&](const std::shared_ptr<HttpExchange>& exchange) {
        exchange->Respond(TextResponse(200, "served"));
        server->Drain(kLimit, [&] { loop.Stop(); });
      });
  ASSERT_TRUE(served.ok());
  server = std::move(*served);
  loop.After(kLimit, [&] { loop.Stop(); });
  loop.Run();
  const auto answer = asked.get();
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->body, "served");
}

}  // namespace
}  // namespace parallelrun::coordinator
