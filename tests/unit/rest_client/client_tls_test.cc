// TLS between client and server: whom the client trusts, and what it shows.
#include <gtest/gtest.h>
#include <sys/inotify.h>

#include <array>
#include <cstdlib>
#include <future>
#include <mutex>

#include "base/fd.h"
#include "tests/unit/kube/scripted_server.h"
#include "tests/unit/rest_client/client_fixture.h"

namespace parallelrun::rest_client {
namespace {

class RestClientTlsTest : public RestClientTest {
 protected:
  const TestCertificate pair_;
};

TEST_F(RestClientTlsTest, TlsRoundTrip) {
  const TlsFolder folder(pair_);
  TestServer server(folder.Options());
  const auto client = Client(server.port(), pair_.certificate);
  for (int i = 0; i < 3; ++i) {
    const auto response = client->Send(Post("/a", std::string(900, 'x')), seconds(60));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, "POST /a? " + std::string(900, 'x'));
  }
  RawClient plain(server.port());
  plain.Send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(plain.ReadToEnd().find("HTTP/1.1"), std::string::npos);
}

TEST_F(RestClientTlsTest, OnlyTheGivenCaIsTrusted) {
  const TestCertificate other;
  const TlsFolder folder(pair_);
  bool handled = false;
  TestServer server(folder.Options(), [&](const auto&) { handled = true; });
  const auto response = Client(server.port(), other.certificate)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_FALSE(server.OnLoop([&] { return handled; }));
}

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

TEST_F(RestClientTlsTest, WithoutACaTheSystemsAreTrusted) {
  const TlsFolder folder(pair_);
  TestServer server(folder.Options());
  const SystemCertificates system(folder, pair_.certificate);
  RestClientOptions options;
  options.base_url = "https://127.0.0.1:" + std::to_string(server.port());
  const auto client = RestClient::Make(options);
  ASSERT_TRUE(client.ok());
  const auto response = (*client)->Send(Post("/", ""), seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
  EXPECT_TRUE(system.WereRead());
}

TEST_F(RestClientTlsTest, WithACaTheSystemsAreNotEvenRead) {
  const TlsFolder folder(pair_);
  TestServer server(folder.Options());
  const SystemCertificates system(folder, pair_.certificate);
  const auto response = Client(server.port(), pair_.certificate)->Send(Post("/", ""), seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
  EXPECT_FALSE(system.WereRead());
}

TEST_F(RestClientTlsTest, TlsServerNoticesAParkedClientThatGoes) {
  const TlsFolder folder(pair_);
  std::promise<void> came, gone;
  std::shared_ptr<HttpExchange> parked;
  TestServer server(folder.Options(), [&](const std::shared_ptr<HttpExchange>& exchange) {
    parked = exchange;
    exchange->OnGone([&] { gone.set_value(); });
    came.set_value();
  });
  const auto client = Client(server.port(), pair_.certificate);
  auto response =
      std::async(std::launch::async, [&] { return client->Send(Post("/", ""), seconds(60)); });
  came.get_future().get();
  client->Cancel();
  EXPECT_FALSE(response.get().ok());
  gone.get_future().get();
  server.OnLoop([&] { return parked.reset(), 0; });
}

TEST_F(RestClientTlsTest, TheNameToVerifyReplacesTheHostOfTheUrl) {
  const TestCertificate named("DNS:coordinator.default.svc");
  std::mutex mutex;
  std::string request;
  kube::ScriptedServer server(named, [&](kube::ScriptedConnection& connection) {
    const std::string text = connection.ReadRequest();
    const std::lock_guard lock(mutex);
    request = text;
    connection.Respond(200, "{}");
    connection.WaitForClient();
  });
  RestClientOptions options;
  options.base_url = server.url();
  options.ca_pem = named.certificate;
  options.verify_host = "coordinator.default.svc";
  const auto good = (*RestClient::Make(options))->Send(Post("/", ""), seconds(60));
  ASSERT_TRUE(good.ok()) << good.error().message;
  {
    const std::lock_guard lock(mutex);
    EXPECT_NE(request.find("Host:coordinator.default.svc\r\n"), std::string::npos) << request;
  }
  for (const char* wrong : {"", "other.default.svc"}) {
    options.verify_host = wrong;
    const auto bad = (*RestClient::Make(options))->Send(Post("/", ""), seconds(60));
    ASSERT_FALSE(bad.ok()) << wrong;
    EXPECT_EQ(bad.error().code, Code::kUnavailable);
  }
}

TEST_F(RestClientTlsTest, AClientCertificateIsShown) {
  const TestCertificate mine, other;
  kube::ScriptedServer server(
      pair_,
      [](kube::ScriptedConnection& connection) {
        connection.ReadRequest();
        connection.Respond(200, "{}");
        connection.WaitForClient();
      },
      mine.certificate);
  RestClientOptions options;
  options.base_url = server.url();
  for (const auto& [tls, good] :
       {std::pair{RestTls{pair_.certificate, mine.certificate, mine.key}, true},
        std::pair{RestTls{pair_.certificate, other.certificate, other.key}, false},
        std::pair{RestTls{pair_.certificate, mine.certificate, other.key}, false},
        std::pair{RestTls{pair_.certificate, "", ""}, false},
        std::pair{RestTls{"no certificate", mine.certificate, mine.key}, false}}) {
    options.tls = [&tls = tls] { return tls; };
    const auto response = (*RestClient::Make(options))->Send(Post("/", ""), seconds(60));
    EXPECT_EQ(response.ok(), good) << (response.ok() ? "" : response.error().message);
  }
}

TEST_F(RestClientTlsTest, ACertificateThatRotatesIsTakenWithTheNextConnection) {
  const TestCertificate next;
  kube::ScriptedServer server(pair_, [](kube::ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Respond(200, "{}", "Connection: close\r\n");
  });
  std::mutex mutex;
  std::string ca = pair_.certificate;
  RestClientOptions options;
  options.base_url = server.url();
  options.tls = [&] {
    const std::lock_guard lock(mutex);
    return RestTls{ca, "", ""};
  };
  const auto client = RestClient::Make(options);
  EXPECT_TRUE((*client)->Send(Post("/", ""), seconds(60)).ok());
  server.Use(next);
  EXPECT_FALSE((*client)->Send(Post("/", ""), seconds(60)).ok());
  {
    const std::lock_guard lock(mutex);
    ca = next.certificate;
  }
  const auto after = (*client)->Send(Post("/", ""), seconds(60));
  EXPECT_TRUE(after.ok()) << after.error().message;
}

}  // namespace
}  // namespace parallelrun::rest_client
