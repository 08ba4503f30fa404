// TLS between client and server: whom the client trusts, and what it shows.
#include <gtest/gtest.h>

#include <mutex>

#include "tests/unit/base/http/client_tls_contract.h"
#include "tests/unit/kube/scripted_server.h"
#include "tests/unit/rest_client/client_fixture.h"

namespace parallelrun::rest_client {
namespace {

class RestClientTlsTest : public RestClientTest {
 protected:
  const TestCertificate pair_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Rest, ClientTlsContract, RestClientTest);

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
