// The client, and what it meets.
#include "rest_client/client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "rest_client/thread.h"
#include "tests/unit/base/http/client_contract.h"
#include "tests/unit/rest_client/client_fixture.h"

namespace parallelrun::rest_client {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Rest, ClientContract, RestClientTest);
INSTANTIATE_TYPED_TEST_SUITE_P(Rest, Ipv6ClientContract, RestClientTest);

TEST_F(RestClientTest, ReusesItsConnection) {
  TestServer server;
  const auto client = Client(server.port());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(client->Send(Post("/", ""), seconds(60)).ok());
  // Not always 1: a connection goes back to the pool a little after the answer is out.
  EXPECT_LE(server.OnLoop([&] { return server.server().connections(); }), 3u);
}

TEST_F(RestClientTest, AsksNothingAfterItIsDestroyed) {
  std::promise<void> go;
  std::promise<void> over;
  PostToRestThread([wait = go.get_future().share()] { wait.wait(); });
  std::atomic<int> questions = 0;
  {
    RestClientOptions options;
    options.base_url = "https://127.0.0.1:1";
    options.tls = [&questions] {
      ++questions;
      return RestTls();
    };
    auto client = RestClient::Make(options);
    ASSERT_TRUE(client.ok());
    // It is given up before the thread of all connections comes to it.
    EXPECT_EQ((*client)->Send(Post("/", ""), Duration(0)).error().code, Code::kTimeout);
  }
  PostToRestThread([&over] { over.set_value(); });
  go.set_value();
  over.get_future().wait();
  EXPECT_EQ(questions, 0);
}

TEST_F(RestClientTest, DeadlineIsKept) {
  std::shared_ptr<HttpExchange> parked;
  TestServer server({}, [&](const auto& exchange) { parked = exchange; });
  const auto client = Client(server.port());
  const auto begin = std::chrono::steady_clock::now();
  const auto response = client->Send(Post("/", ""), milliseconds(100));
  const auto took = std::chrono::steady_clock::now() - begin;
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kTimeout) << response.error().message;
  // Silence alone, which is a time-out too, would be told in other words.
  EXPECT_NE(response.error().message.find("no answer within 100ms"), std::string::npos)
      << response.error().message;
  EXPECT_GE(took, milliseconds(100));
  // The connection was closed, and the server saw it.
  while (server.OnLoop([&] { return server.server().connections(); }) != 0) {
  }
  server.OnLoop([&] { return parked.reset(), 0; });
}

class Ipv6ClientTest : public Ipv6ClientContract<RestClientTest> {};

TEST_F(Ipv6ClientTest, TheCertificateMustCarryTheNameToVerify) {
  const TestCertificate named("DNS:coordinator.default.svc");
  const TlsFolder folder(named);
  TestServer server(Loopback(folder.Options()), &AnswerHost);
  RestClientOptions options;
  options.verify_host = "coordinator.default.svc";
  const auto response = Ask(server.port(), &named, options);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "coordinator.default.svc");
  EXPECT_EQ(Ask(server.port(), &named).error().code, Code::kUnavailable);
  options.verify_host = "other.svc";
  EXPECT_EQ(Ask(server.port(), &named, options).error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace parallelrun::rest_client
