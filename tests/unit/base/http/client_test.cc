// The client, and what it meets.
#include "base/http/client.h"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/http/client/names.h"
#include "tests/unit/base/http/client_contract.h"
#include "tests/unit/base/http/client_fixture.h"

namespace parallelrun {
namespace {

INSTANTIATE_TYPED_TEST_SUITE_P(Http, ClientContract, HttpClientTest);
INSTANTIATE_TYPED_TEST_SUITE_P(Http, Ipv6ClientContract, HttpClientTest);

TEST_F(HttpClientTest, ReusesItsConnection) {
  TestServer server;
  const auto client = Client(server.port());
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(client->Send(Post("/", ""), seconds(60)).ok());
  EXPECT_EQ(server.OnLoop([&] { return server.server().connections(); }), 1u);
}

TEST_F(HttpClientTest, DeadlineIsKept) {
  std::shared_ptr<HttpExchange> parked;
  TestServer server({}, [&](const auto& exchange) {
    if (exchange->request().path == "/at-once") return exchange->Respond(TextResponse(200, ""));
    parked = exchange;
  });
  const auto client = Client(server.port());
  // Its connection is kept: else, on a busy machine, it may be this one that takes all the time.
  ASSERT_TRUE(client->Send(Post("/at-once", ""), seconds(60)).ok());
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

TEST_F(HttpClientTest, ARequestMayBeSignedWhereThereIsNoToken) {
  PlainServer server([](PlainConnection& connection) {
    connection.Respond(200, connection.ReadRequest());
    connection.WaitForClient();
  });
  HttpRequest signed_one = Get();
  signed_one.headers.push_back({"Authorization", "AWS4-HMAC-SHA256 Signature=0"});
  const auto response = Client(server.port())->Send(signed_one, seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_NE(response->body.find("Authorization: AWS4-HMAC-SHA256 Signature=0\r\n"),
            std::string::npos);
}

class Ipv6ClientTest : public Ipv6ClientContract<HttpClientTest> {};

TEST_F(Ipv6ClientTest, AnAddressThatRefusesIsPassedOver) {
  // "localhost" is ::1 and 127.0.0.1 at most places; the server is on one of them.
  for (const char* host : {"127.0.0.1", "::1"}) {
    HttpServerOptions options;
    options.host = host;
    TestServer server(options);
    const auto found = LookUp("localhost", server.port());
    ASSERT_TRUE(found.ok()) << found.error().message;
    HttpClientOptions client;
    client.base_url = fmt::format("http://localhost:{}", server.port());
    const auto response = Make(std::move(client))->Send(Post("/", ""), seconds(60));
    const bool listed = std::any_of(found->begin(), found->end(), [&](const Address& address) {
      return address.Text().find(host) != std::string::npos;
    });
    EXPECT_EQ(response.ok(), listed) << host;
  }
}

}  // namespace
}  // namespace parallelrun
