// TLS between client and server: whom the client trusts, and what it shows.
#include <gtest/gtest.h>

#include <future>

#include "tests/unit/base/http/client_fixture.h"
#include "tests/unit/base/http/client_tls_contract.h"
#include "tests/unit/kube/scripted_server.h"

namespace parallelrun {
namespace {

class HttpClientTlsTest : public HttpClientTest {
 protected:
  const TestCertificate pair_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Http, ClientTlsContract, HttpClientTest);

TEST_F(HttpClientTlsTest, TheCertificateMustCarryTheHost) {
  const TestCertificate named("DNS:coordinator.default.svc");
  const TlsFolder folder(named);
  TestServer server(folder.Options());
  const auto response = Client(server.port(), named.certificate)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_NE(response.error().message.find("not trusted: IP address mismatch"), std::string::npos)
      << response.error().message;
}

TEST_F(HttpClientTlsTest, ANameIsAskedForAndChecked) {
  const TestCertificate named("DNS:localhost");
  const TlsFolder folder(named);
  TestServer server(folder.Options());
  HttpClientOptions options;
  options.base_url = "https://localhost:" + std::to_string(server.port());
  options.ca_pem = named.certificate;
  const auto response = Make(options)->Send(Post("/", ""), seconds(60));
  EXPECT_TRUE(response.ok()) << response.error().message;
}

// What speaks TLS 1.1 at most, on `fd`.
void AcceptOldTls(int fd, const TlsFolder& folder) {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
  SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
  SSL_CTX_set_cipher_list(context, "ALL:@SECLEVEL=0");
  SSL_CTX_use_certificate_chain_file(context, (folder.folder() + "/tls.crt").c_str());
  SSL_CTX_use_PrivateKey_file(context, (folder.folder() + "/tls.key").c_str(), SSL_FILETYPE_PEM);
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, fd);
  EXPECT_NE(SSL_accept(ssl), 1);
  SSL_free(ssl);
  SSL_CTX_free(context);
}

TEST_F(HttpClientTlsTest, OldTlsIsNotSpoken) {
  const TlsFolder folder(pair_);
  PlainServer server([&](PlainConnection& connection) { AcceptOldTls(connection.fd(), folder); });
  const auto response = Client(server.port(), pair_.certificate)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_NE(response.error().message.find("protocol"), std::string::npos)
      << response.error().message;
}

TEST_F(HttpClientTlsTest, AHandshakeHasItsTime) {
  PlainServer server([](PlainConnection& connection) { connection.WaitForClient(); });
  HttpClientOptions options;
  options.base_url = "https://127.0.0.1:" + std::to_string(server.port());
  options.ca_pem = pair_.certificate;
  options.handshake_timeout = milliseconds(50);
  const auto response = Make(options)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kTimeout);
  EXPECT_NE(response.error().message.find("TLS handshake with 127.0.0.1"), std::string::npos)
      << response.error().message;
}

TEST_F(HttpClientTlsTest, AHandshakeIsCancelled) {
  std::promise<void> begun;
  PlainServer server([&](PlainConnection& connection) {
    connection.Read(1);
    begun.set_value();
    connection.WaitForClient();
  });
  const auto client = Client(server.port(), pair_.certificate);
  auto response =
      std::async(std::launch::async, [&] { return client->Send(Post("/", ""), seconds(60)); });
  begun.get_future().get();
  client->Cancel();
  EXPECT_NE(response.get().error().message.find("cancelled"), std::string::npos);
}

TEST_F(HttpClientTlsTest, AServerThatIsNotTlsIsTold) {
  PlainServer server([](PlainConnection& connection) {
    connection.Read(1);
    connection.Respond(400, "this is plain HTTP");
    connection.WaitForClient();
  });
  const auto response = Client(server.port(), pair_.certificate)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnavailable);
  EXPECT_NE(response.error().message.find("TLS handshake"), std::string::npos);
}

// Much in both directions: records of TLS end where they like.
TEST_F(HttpClientTlsTest, LargeBodiesGoBothWays) {
  const TlsFolder folder(pair_);
  TestServer server(folder.Options(), [](const std::shared_ptr<HttpExchange>& exchange) {
    std::string body(3'000'000, '\0');
    for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 7 + i / 251);
    exchange->Respond(TextResponse(200, std::move(body)));
  });
  const auto client = Client(server.port(), pair_.certificate);
  for (int i = 0; i < 3; ++i) {
    const auto response = client->Send(Post("/", std::string(1000, 'x')), seconds(60));
    ASSERT_TRUE(response.ok()) << response.error().message;
    ASSERT_EQ(response->body.size(), 3'000'000u);
    EXPECT_EQ(response->body[2'999'999], static_cast<char>(2'999'999u * 7 + 2'999'999u / 251));
  }
  EXPECT_EQ(server.OnLoop([&] { return server.server().connections(); }), 1u);
}

// A connection that ends without TLS's own goodbye may have been cut by anybody on the way: where
// only the end tells that the answer is whole, it is not.
TEST_F(HttpClientTlsTest, AnEndWithoutGoodbyeIsACut) {
  kube::ScriptedServer server(pair_, [](kube::ScriptedConnection& connection) {
    connection.ReadRequest();
    connection.Write("HTTP/1.1 200 OK\r\n\r\nhalf");
  });
  HttpClientOptions options;
  options.base_url = server.url();
  options.ca_pem = pair_.certificate;
  const auto response = Make(options)->Send(Post("/", ""), seconds(60));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, Code::kUnavailable);
}

}  // namespace
}  // namespace parallelrun
