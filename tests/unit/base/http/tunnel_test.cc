#include "base/http/tunnel.h"

#include <spdlog/fmt/fmt.h>

#include <vector>

#include "tests/unit/base/http/fixture.h"

namespace parallelrun {
namespace {

constexpr const char* kName = "DNS:coordinator.example";

// A tunnel on the loop of a plain server, which also runs; what it said goes to `errors`.
class TunnelTest : public testing::Test {
 protected:
  void Open(const TestCertificate& trusted, const std::string& name = "coordinator.example",
            size_t most = 64) {
    TlsTunnelOptions options;
    options.ca_pem = trusted.certificate;
    options.server_name = name;
    options.max_connections = most;
    options.on_error = [this](const Error& error) { errors_.push_back(error.message); };
    host_.OnLoop([&] {
      auto tunnel = TlsTunnel::Start(host_.loop(), options);
      EXPECT_TRUE(tunnel.ok()) << tunnel.error().message;
      tunnel_ = std::move(*tunnel);
      return 0;
    });
  }
  void LeadTo(uint16_t port) {
    host_.OnLoop([&] { return tunnel_->LeadTo(port), 0; });
  }
  void TearDown() override {
    host_.OnLoop([&] { return tunnel_.reset(), 0; });
  }

  const TestCertificate pair_{kName};
  const TlsFolder folder_{pair_};
  TestServer far_{folder_.Options()};
  TestServer host_;
  std::unique_ptr<TlsTunnel> tunnel_;
  std::vector<std::string> errors_;  // on the loop of `host_`
};

TEST_F(TunnelTest, WhoSpeaksPlainlySpeaksToTheServer) {
  Open(pair_);
  LeadTo(far_.port());
  for (int i = 0; i < 3; ++i) {
    RawClient client(tunnel_->port());
    for (int k = 0; k < 2; ++k) {
      client.Send(kGet);
      EXPECT_NE(client.ReadResponse().find("GET /a?q=1"), std::string::npos);
    }
  }
  EXPECT_EQ(host_.OnLoop([&] { return errors_; }), std::vector<std::string>());
}

TEST_F(TunnelTest, MuchArrivesInOrderAndItsEndIsTheEnd) {
  std::string all;
  for (int i = 0; i < 300'000; ++i) all += fmt::format("{} ", i);
  TestServer far(folder_.Options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Begin(TextResponse(200, ""));
    exchange->Send(all);
  });
  Open(pair_);
  LeadTo(far.port());
  RawClient client(tunnel_->port());
  client.Send(kGet);
  const std::string answer = client.ReadToEnd();
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), all);
}

TEST_F(TunnelTest, AClientThatGoesIsGoneForTheServerToo) {
  std::promise<void> gone;
  std::shared_ptr<HttpExchange> kept;
  TestServer far(folder_.Options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
    kept = exchange;
    exchange->OnGone([&] { gone.set_value(); });
    exchange->Begin(TextResponse(200, "one"));
  });
  Open(pair_);
  LeadTo(far.port());
  {
    RawClient client(tunnel_->port());
    client.Send(kGet);
    client.ReadResponse();
  }
  gone.get_future().get();
  far.OnLoop([&] { return kept.reset(), 0; });
}

TEST_F(TunnelTest, AServerOfAnotherAuthorityIsNotSpokenTo) {
  const TestCertificate other(kName);
  Open(other);
  LeadTo(far_.port());
  RawClient client(tunnel_->port());
  client.Send(kGet);
  EXPECT_EQ(client.ReadToEnd(), "");
  const auto errors = host_.OnLoop([&] { return errors_; });
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].find("certificate verify failed"), std::string::npos) << errors[0];
}

TEST_F(TunnelTest, AServerOfAnotherNameIsNotSpokenTo) {
  Open(pair_, "another.example");
  LeadTo(far_.port());
  RawClient client(tunnel_->port());
  client.Send(kGet);
  EXPECT_EQ(client.ReadToEnd(), "");
  EXPECT_EQ(host_.OnLoop([&] { return errors_.size(); }), 1U);
}

TEST_F(TunnelTest, WithoutAServerItClosesAndSaysSo) {
  Open(pair_);
  EXPECT_EQ(RawClient(tunnel_->port()).ReadToEnd(), "");
  EXPECT_EQ(host_.OnLoop([&] { return errors_.size(); }), 0U) << "it leads nowhere yet";
  LeadTo(1);  // nobody listens there
  EXPECT_EQ(RawClient(tunnel_->port()).ReadToEnd(), "");
  EXPECT_EQ(host_.OnLoop([&] { return errors_.size(); }), 1U);
}

TEST_F(TunnelTest, OneMoreThanItTakesIsClosed) {
  Open(pair_, "coordinator.example", 1);
  LeadTo(far_.port());
  RawClient first(tunnel_->port());
  first.Send(kGet);
  first.ReadResponse();
  EXPECT_EQ(RawClient(tunnel_->port()).ReadToEnd(), "");
  first.Send(kGet);
  EXPECT_NE(first.ReadResponse(), "");
}

TEST(Tunnel, WithoutACertificateItTrustsNobody) {
  EventLoop loop;
  const auto tunnel = TlsTunnel::Start(loop, {});
  ASSERT_FALSE(tunnel.ok());
  EXPECT_EQ(tunnel.error().code, Code::kInvalid);
}

}  // namespace
}  // namespace parallelrun
