// The client, and what it meets.
#include "rest_client/client.h"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <future>
#include <mutex>

#include "rest_client/thread.h"
#include "tests/unit/kube/scripted_server.h"
#include "tests/unit/rest_client/client_fixture.h"

namespace parallelrun::rest_client {
namespace {

TEST_F(RestClientTest, SendsAndReceives) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& r = exchange->request();
    HttpResponse response = TextResponse(
        r.path == "/missing" ? 404 : 200,
        r.method + " " + r.query + " " + r.body + " " + std::string(r.Header("Authorization")) +
            " " + std::string(r.Header("User-Agent")) + " " + std::string(r.Header("X-A")));
    response.headers.push_back({"X-B", "b"});
    exchange->Respond(std::move(response));
  });
  const auto client = Client(server.port(), "", "secret");
  HttpRequest request = Post("/x%20y", "hello");
  request.query = "q=%26";
  request.headers.push_back({"X-A", "a"});
  const auto response = client->Send(request, seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "POST q=%26 hello Bearer secret test/1 a");
  EXPECT_EQ(response->Header("x-b"), "b");
  EXPECT_EQ(response->content_type, "text/plain; charset=utf-8");
  const auto missing = client->Send(Post("/missing", ""), seconds(60));
  ASSERT_TRUE(missing.ok());
  EXPECT_EQ(missing->status, 404);
}

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

TEST_F(RestClientTest, CarriesBinaryBodiesOfAnySize) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    HttpResponse response;
    response.content_type = "application/octet-stream";
    for (int i = 0; i < 3'000'000; ++i) response.body.push_back(static_cast<char>(i * 7));
    exchange->Respond(std::move(response));
  });
  const auto response =
      Client(server.port())->Send(Post("/", std::string("\0\xff\r\n", 4)), seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  ASSERT_EQ(response->body.size(), 3'000'000u);
  EXPECT_EQ(response->body[2'999'999], static_cast<char>(2'999'999 * 7));
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

TEST_F(RestClientTest, CancelEndsCallsInFlightAndLaterOnes) {
  std::promise<void> arrived;
  std::vector<std::shared_ptr<HttpExchange>> parked;
  TestServer server({}, [&](const auto& exchange) {
    parked.push_back(exchange);
    if (parked.size() == 2) arrived.set_value();
  });
  const auto client = Client(server.port());
  const auto send = [&] { return client->Send(Post("/", ""), seconds(60)); };
  auto a = std::async(std::launch::async, send);
  auto b = std::async(std::launch::async, send);
  arrived.get_future().get();
  client->Cancel();
  for (auto* call : {&a, &b}) {
    const auto response = call->get();
    ASSERT_FALSE(response.ok());
    EXPECT_EQ(response.error().code, Code::kUnavailable);
  }
  EXPECT_EQ(send().error().code, Code::kUnavailable);
  server.OnLoop([&] { return parked.clear(), 0; });
}

TEST_F(RestClientTest, RefusedAndBrokenConnectionsAreUnavailable) {
  // A port that is taken, so that nobody else listens there meanwhile, and not listened on.
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const uint16_t port = ntohs(address.sin_port);
  const auto refused = Client(port)->Send(Post("/", ""), seconds(60));
  close(taken);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kUnavailable) << refused.error().message;
  EXPECT_NE(refused.error().message.find(std::to_string(port)), std::string::npos);

  std::shared_ptr<HttpExchange> kept;
  TestServer server({}, [&](const std::shared_ptr<HttpExchange>& exchange) {
    kept = exchange;
    server.server().Drain(Duration(0), [] {});
  });
  const auto broken = Client(server.port())->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, Code::kUnavailable) << broken.error().message;
  server.OnLoop([&] { return kept.reset(), 0; });
}

TEST_F(RestClientTest, RedirectsAreNotFollowed) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    HttpResponse response = TextResponse(302, "");
    response.headers.push_back({"Location", "/elsewhere"});
    exchange->Respond(std::move(response));
  });
  const auto response = Client(server.port())->Send(Post("/", ""), seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 302);
}

TEST_F(RestClientTest, RefusesRequestsThatWouldBreakTheMessage) {
  TestServer server;
  const auto client = Client(server.port());
  EXPECT_EQ(client->Send(Post("/a b", ""), seconds(1)).error().code, Code::kInvalid);
  EXPECT_EQ(client->Send(Post("a", ""), seconds(1)).error().code, Code::kInvalid);
  HttpRequest request = Post("/", "");
  request.headers.push_back({"X", "a\r\nY: b"});
  EXPECT_EQ(client->Send(request, seconds(1)).error().code, Code::kInvalid);
  const auto with_token = Client(server.port(), "", "t");
  for (const char* ours : {"Host", "content-length", "Transfer-Encoding", "Authorization"}) {
    HttpRequest second = Post("/", "");
    second.headers.push_back({ours, "1"});
    EXPECT_EQ(with_token->Send(second, seconds(1)).error().code, Code::kInvalid) << ours;
  }
  HttpRequest two = Post("/", "");
  two.method = "GET / HTTP/1.1\r\nX:";
  EXPECT_EQ(client->Send(two, seconds(1)).error().code, Code::kInvalid);
  const auto forged = Client(server.port(), "", "t\r\nX: y");
  EXPECT_EQ(forged->Send(Post("/", ""), seconds(1)).error().code, Code::kInvalid);
}

TEST_F(RestClientTest, MakeRefusesWhatCannotWork) {
  for (const char* url : {"", "host", "ftp://x", "http://"}) {
    RestClientOptions options;
    options.base_url = url;
    EXPECT_FALSE(RestClient::Make(options).ok()) << url;
  }
  RestClientOptions options;
  options.base_url = "https://127.0.0.1:1";
  options.ca_pem = "not a certificate";
  EXPECT_FALSE(RestClient::Make(options).ok());
}

class Ipv6ClientTest : public RestClientTest {
 protected:
  void SetUp() override {
    if (!HasIpv6Loopback()) GTEST_SKIP() << "this machine has no ::1";
  }
  static HttpServerOptions Loopback(HttpServerOptions options = {}) {
    options.host = "::1";
    return options;
  }
  static void AnswerHost(const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Respond(TextResponse(200, std::string(exchange->request().Header("Host"))));
  }
  // Of a server whose certificate is `pair`, if there is one.
  static Result<HttpResponse> Ask(uint16_t port, const TestCertificate* pair = nullptr,
                                  const std::string& verify_host = "") {
    RestClientOptions options;
    options.base_url = fmt::format("{}://[::1]:{}", pair == nullptr ? "http" : "https", port);
    if (pair != nullptr) options.ca_pem = pair->certificate;
    options.verify_host = verify_host;
    return (*RestClient::Make(options))->Send(Post("/", ""), seconds(60));
  }
};

TEST_F(Ipv6ClientTest, AnAddressInBracketsIsReached) {
  TestServer server(Loopback(), &AnswerHost);
  const auto response = Ask(server.port());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, fmt::format("[::1]:{}", server.port()));
}

TEST_F(Ipv6ClientTest, TheCertificateMustCarryTheAddress) {
  const TestCertificate right("IP:::1"), wrong("IP:::2");
  const TlsFolder right_folder(right), wrong_folder(wrong);
  TestServer good(Loopback(right_folder.Options()));
  const auto response = Ask(good.port(), &right);
  ASSERT_TRUE(response.ok()) << response.error().message;
  TestServer bad(Loopback(wrong_folder.Options()));
  EXPECT_EQ(Ask(bad.port(), &wrong).error().code, Code::kUnavailable);
}

TEST_F(Ipv6ClientTest, OrTheNameToVerify) {
  const TestCertificate named("DNS:coordinator.default.svc");
  const TlsFolder folder(named);
  TestServer server(Loopback(folder.Options()), &AnswerHost);
  const auto response = Ask(server.port(), &named, "coordinator.default.svc");
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "coordinator.default.svc");
  EXPECT_EQ(Ask(server.port(), &named).error().code, Code::kUnavailable);
  EXPECT_EQ(Ask(server.port(), &named, "other.svc").error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace parallelrun::rest_client
