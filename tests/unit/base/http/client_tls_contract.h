// Whom both clients of HTTP trust, written once: as client_contract.h.
#pragma once

#include <gtest/gtest.h>
#include <sys/inotify.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include "base/fd.h"
#include "tests/unit/base/http/fixture.h"

namespace parallelrun {

// The system's certificates, while this lives: this one.
class SystemCertificates {
 public:
  SystemCertificates(const TlsFolder& folder, const std::string& certificate)
      : opened_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    const std::string file = folder.folder() + "/system.crt";
    std::ofstream(file) << certificate;
    setenv("SSL_CERT_FILE", file.c_str(), 1);
    EXPECT_GE(inotify_add_watch(opened_.get(), file.c_str(), IN_OPEN), 0);
  }
  ~SystemCertificates() { unsetenv("SSL_CERT_FILE"); }
  SystemCertificates(const SystemCertificates&) = delete;
  SystemCertificates& operator=(const SystemCertificates&) = delete;

  bool WereRead() const {
    std::array<char, 4096> event{};
    return read(opened_.get(), event.data(), event.size()) > 0;
  }

 private:
  const Fd opened_;
};

template <typename Fixture>
class ClientTlsContract : public Fixture {
 protected:
  const TestCertificate pair_;
};
TYPED_TEST_SUITE_P(ClientTlsContract);

TYPED_TEST_P(ClientTlsContract, TlsRoundTrip) {
  const TlsFolder folder(this->pair_);
  TestServer server(folder.Options());
  const auto client = TestFixture::Client(server.port(), this->pair_.certificate);
  for (int i = 0; i < 3; ++i) {
    const auto response = client->Send(TestFixture::Post("/a", std::string(900, 'x')), seconds(60));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, "POST /a? " + std::string(900, 'x'));
  }
  RawClient plain(server.port());
  plain.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain.ReadToEnd().find("HTTP/1.1"), std::string::npos);
}

TYPED_TEST_P(ClientTlsContract, OnlyTheGivenCaIsTrusted) {
  const TestCertificate other;
  const TlsFolder folder(this->pair_);
  bool handled = false;
  TestServer server(folder.Options(), [&](const auto&) { handled = true; });
  const auto response = TestFixture::Client(server.port(), other.certificate)
                            ->Send(TestFixture::Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_FALSE(server.OnLoop([&] { return handled; }));
}

TYPED_TEST_P(ClientTlsContract, WithoutACaTheSystemsAreTrusted) {
  const TlsFolder folder(this->pair_);
  TestServer server(folder.Options());
  const SystemCertificates system(folder, this->pair_.certificate);
  typename TypeParam::Options options;
  options.base_url = "https://127.0.0.1:" + std::to_string(server.port());
  const auto client = TypeParam::Made::Make(options);
  ASSERT_TRUE(client.ok());
  const auto response = (*client)->Send(TestFixture::Post("/", ""), seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
  EXPECT_TRUE(system.WereRead());
}

TYPED_TEST_P(ClientTlsContract, WithACaTheSystemsAreNotEvenRead) {
  const TlsFolder folder(this->pair_);
  TestServer server(folder.Options());
  const SystemCertificates system(folder, this->pair_.certificate);
  const auto response = TestFixture::Client(server.port(), this->pair_.certificate)
                            ->Send(TestFixture::Post("/", ""), seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
  EXPECT_FALSE(system.WereRead());
}

TYPED_TEST_P(ClientTlsContract, TlsServerNoticesAParkedClientThatGoes) {
  const TlsFolder folder(this->pair_);
  std::promise<void> came, gone;
  std::shared_ptr<HttpExchange> parked;
  TestServer server(folder.Options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
    parked = exchange;
    exchange->OnGone([&] { gone.set_value(); });
    came.set_value();
  });
  const auto client = TestFixture::Client(server.port(), this->pair_.certificate);
  auto response = std::async(std::launch::async,
                             [&] { return client->Send(TestFixture::Post("/", ""), seconds(60)); });
  came.get_future().get();
  client->Cancel();
  EXPECT_FALSE(response.get().ok());
  gone.get_future().get();
  server.OnLoop([&] { return parked.reset(), 0; });
}

REGISTER_TYPED_TEST_SUITE_P(ClientTlsContract, TlsRoundTrip, OnlyTheGivenCaIsTrusted,
                            WithoutACaTheSystemsAreTrusted, WithACaTheSystemsAreNotEvenRead,
                            TlsServerNoticesAParkedClientThatGoes);

}  // namespace parallelrun
