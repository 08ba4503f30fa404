// What both clients of HTTP keep, written once: those of base and of rest_client each instantiate
// it with the fixture of their tests, which is a ClientFixture.
#pragma once

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/base/http/fixture.h"

namespace parallelrun {

template <typename Fixture>
class ClientContract : public Fixture {};
TYPED_TEST_SUITE_P(ClientContract);

TYPED_TEST_P(ClientContract, SendsAndReceives) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& r = exchange->request();
    HttpResponse response = TextResponse(
        r.path == "/missing" ? 404 : 200,
        r.method + " " + r.query + " " + r.body + " " + std::string(r.Header("Authorization")) +
            " " + std::string(r.Header("User-Agent")) + " " + std::string(r.Header("X-A")));
    response.headers.push_back({"X-B", "b"});
    exchange->Respond(std::move(response));
  });
  const auto client = TestFixture::Client(server.port(), "", "secret");
  HttpRequest request = TestFixture::Post("/x%20y", "hello");
  request.query = "q=%26";
  request.headers.push_back({"X-A", "a"});
  const auto response = client->Send(request, seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "POST q=%26 hello Bearer secret test/1 a");
  EXPECT_EQ(response->Header("x-b"), "b");
  EXPECT_EQ(response->content_type, "text/plain; charset=utf-8");
  const auto missing = client->Send(TestFixture::Post("/missing", ""), seconds(60));
  ASSERT_TRUE(missing.ok());
  EXPECT_EQ(missing->status, 404);
}

TYPED_TEST_P(ClientContract, CarriesBinaryBodiesOfAnySize) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    HttpResponse response;
    response.content_type = "application/octet-stream";
    for (int i = 0; i < 3'000'000; ++i) response.body.push_back(static_cast<char>(i * 7));
    exchange->Respond(std::move(response));
  });
  const auto response =
      TestFixture::Client(server.port())
          ->Send(TestFixture::Post("/", std::string("\0\xff\r\n", 4)), seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  ASSERT_EQ(response->body.size(), 3'000'000u);
  EXPECT_EQ(response->body[2'999'999], static_cast<char>(2'999'999 * 7));
}

TYPED_TEST_P(ClientContract, CancelEndsCallsInFlightAndLaterOnes) {
  std::promise<void> arrived;
  std::vector<std::shared_ptr<HttpExchange>> parked;
  TestServer server({}, [&](const auto& exchange) {
    parked.push_back(exchange);
    if (parked.size() == 2) arrived.set_value();
  });
  const auto client = TestFixture::Client(server.port());
  const auto send = [&] { return client->Send(TestFixture::Post("/", ""), seconds(60)); };
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

TYPED_TEST_P(ClientContract, RefusedAndBrokenConnectionsAreUnavailable) {
  // A port that is taken, so that nobody else listens there meanwhile, and not listened on.
  const int taken = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const uint16_t port = ntohs(address.sin_port);
  const auto refused = TestFixture::Client(port)->Send(TestFixture::Post("/", ""), seconds(60));
  close(taken);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kUnavailable) << refused.error().message;
  EXPECT_NE(refused.error().message.find(std::to_string(port)), std::string::npos);

  std::shared_ptr<HttpExchange> kept;
  TestServer server({}, [&](const std::shared_ptr<HttpExchange>& exchange) {
    kept = exchange;
    server.server().Drain(Duration(0), [] {});
  });
  const auto broken =
      TestFixture::Client(server.port())->Send(TestFixture::Post("/", ""), seconds(60));
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code, Code::kUnavailable) << broken.error().message;
  server.OnLoop([&] { return kept.reset(), 0; });
}

TYPED_TEST_P(ClientContract, RedirectsAreNotFollowed) {
  TestServer server({}, [](const std::shared_ptr<HttpExchange>& exchange) {
    HttpResponse response = TextResponse(302, "");
    response.headers.push_back({"Location", "/elsewhere"});
    exchange->Respond(std::move(response));
  });
  const auto response =
      TestFixture::Client(server.port())->Send(TestFixture::Post("/", ""), seconds(60));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 302);
}

TYPED_TEST_P(ClientContract, RefusesRequestsThatWouldBreakTheMessage) {
  TestServer server;
  const auto client = TestFixture::Client(server.port());
  EXPECT_EQ(client->Send(TestFixture::Post("/a b", ""), seconds(1)).error().code, Code::kInvalid);
  EXPECT_EQ(client->Send(TestFixture::Post("a", ""), seconds(1)).error().code, Code::kInvalid);
  HttpRequest request = TestFixture::Post("/", "");
  request.headers.push_back({"X", "a\r\nY: b"});
  EXPECT_EQ(client->Send(request, seconds(1)).error().code, Code::kInvalid);
  const auto with_token = TestFixture::Client(server.port(), "", "t");
  for (const char* ours : {"Host", "content-length", "Transfer-Encoding", "Authorization"}) {
    HttpRequest second = TestFixture::Post("/", "");
    second.headers.push_back({ours, "1"});
    EXPECT_EQ(with_token->Send(second, seconds(1)).error().code, Code::kInvalid) << ours;
  }
  EXPECT_EQ(
      client->Send(TestFixture::Request("GET / HTTP/1.1\r\nX:", "/"), seconds(1)).error().code,
      Code::kInvalid);
  const auto forged = TestFixture::Client(server.port(), "", "t\r\nX: y");
  EXPECT_EQ(forged->Send(TestFixture::Post("/", ""), seconds(1)).error().code, Code::kInvalid);
}

TYPED_TEST_P(ClientContract, MakeRefusesWhatCannotWork) {
  for (const char* url : {"", "host", "ftp://x", "http://"}) {
    typename TypeParam::Options options;
    options.base_url = url;
    EXPECT_FALSE(TypeParam::Made::Make(options).ok()) << url;
  }
  typename TypeParam::Options options;
  options.base_url = "https://127.0.0.1:1";
  options.ca_pem = "not a certificate";
  EXPECT_FALSE(TypeParam::Made::Make(options).ok());
}

REGISTER_TYPED_TEST_SUITE_P(ClientContract, SendsAndReceives, CarriesBinaryBodiesOfAnySize,
                            CancelEndsCallsInFlightAndLaterOnes,
                            RefusedAndBrokenConnectionsAreUnavailable, RedirectsAreNotFollowed,
                            RefusesRequestsThatWouldBreakTheMessage, MakeRefusesWhatCannotWork);

template <typename Fixture>
class Ipv6ClientContract : public Fixture {
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
                                  typename Fixture::Options options = {}) {
    options.base_url = fmt::format("{}://[::1]:{}", pair == nullptr ? "http" : "https", port);
    if (pair != nullptr) options.ca_pem = pair->certificate;
    return Fixture::Make(std::move(options))->Send(Fixture::Post("/", ""), seconds(60));
  }
};
TYPED_TEST_SUITE_P(Ipv6ClientContract);

TYPED_TEST_P(Ipv6ClientContract, AnAddressInBracketsIsReached) {
  TestServer server(TestFixture::Loopback(), &TestFixture::AnswerHost);
  const auto response = TestFixture::Ask(server.port());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, fmt::format("[::1]:{}", server.port()));
}

TYPED_TEST_P(Ipv6ClientContract, TheCertificateMustCarryTheAddress) {
  const TestCertificate right("IP:::1"), wrong("IP:::2");
  const TlsFolder right_folder(right), wrong_folder(wrong);
  TestServer good(TestFixture::Loopback(right_folder.Options()));
  const auto response = TestFixture::Ask(good.port(), &right);
  ASSERT_TRUE(response.ok()) << response.error().message;
  TestServer bad(TestFixture::Loopback(wrong_folder.Options()));
  EXPECT_EQ(TestFixture::Ask(bad.port(), &wrong).error().code, Code::kUnavailable);
}

REGISTER_TYPED_TEST_SUITE_P(Ipv6ClientContract, AnAddressInBracketsIsReached,
                            TheCertificateMustCarryTheAddress);

}  // namespace parallelrun
