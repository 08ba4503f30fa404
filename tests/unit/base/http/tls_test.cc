#include "base/http/server/tls.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "tests/unit/base/http/fixture.h"

namespace parallelrun {
namespace {

class TlsIdentityTest : public testing::Test {
 protected:
  void Replace(const std::string& certificate, const std::string& key) {
    const HttpServerOptions options = folder_.Options();
    std::ofstream(options.tls_chain_file) << certificate;
    std::ofstream(options.tls_key_file) << key;
  }
  // What a connection accepted at `now` would show.
  static std::string Shown(TlsIdentity& identity, std::chrono::steady_clock::time_point now) {
    X509* x509 = SSL_CTX_get0_certificate(identity.Current(now).native_handle());
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, x509);
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string pem(data, static_cast<size_t>(size));
    BIO_free(bio);
    return pem;
  }

  const TestCertificate first_;
  const TestCertificate second_;
  const TlsFolder folder_{first_};
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

TEST_F(TlsIdentityTest, FollowsItsFilesAndKeepsTheLastGoodPair) {
  const HttpServerOptions options = folder_.Options();
  auto identity = TlsIdentity::Load(options.tls_chain_file, options.tls_key_file);
  ASSERT_TRUE(identity.ok()) << identity.error().message;
  EXPECT_EQ(Shown(*identity, start_), first_.certificate);

  Replace(second_.certificate, first_.key);  // half way through a rotation
  EXPECT_EQ(Shown(*identity, start_ + std::chrono::seconds(11)), first_.certificate);
  Replace(second_.certificate, second_.key);
  EXPECT_EQ(Shown(*identity, start_ + std::chrono::seconds(12)), first_.certificate)
      << "looked again too soon";
  EXPECT_EQ(Shown(*identity, start_ + std::chrono::seconds(22)), second_.certificate);
}

TEST_F(TlsIdentityTest, MissingFilesAreNamed) {
  const auto identity = TlsIdentity::Load("/nowhere/tls.crt", "/nowhere/tls.key");
  ASSERT_FALSE(identity.ok());
  EXPECT_NE(identity.error().message.find("/nowhere/tls.crt"), std::string::npos);
}

TEST(TlsServerTest, ABadKeyIsNamed) {
  const TestCertificate pair, other;
  const TlsFolder folder(pair);
  std::ofstream(folder.folder() + "/tls.key") << other.key;
  EventLoop loop;
  const auto server = HttpServer::Start(loop, folder.Options(), nullptr, nullptr);
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.error().message.find("tls.key"), std::string::npos) << server.error().message;
}

}  // namespace
}  // namespace parallelrun
