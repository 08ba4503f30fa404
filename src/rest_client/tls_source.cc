#include "rest_client/tls_source.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "base/http/trust.h"

// cpprestsdk calls this for each connection it makes, before it asks TlsSource: some 140
// certificates of the system would be parsed, for 20 to 50 ms of the one thread of all calls, and
// then replaced. The program's own definition goes before that of libssl. TlsSource has them read
// where they are wanted.
extern "C" __attribute__((visibility("default"))) int SSL_CTX_set_default_verify_paths(SSL_CTX*) {
  return 1;
}

namespace parallelrun::rest_client {
namespace {

struct BioFree {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPointer = std::unique_ptr<BIO, BioFree>;
BioPointer BioOf(const std::string& text) {
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Shows this certificate, with its chain, to a server that asks. False if it does not fit its key.
bool ShowCertificate(SSL_CTX* context, const std::string& chain, const std::string& key) {
  const BioPointer bio = BioOf(chain);
  const BioPointer key_bio = BioOf(key);
  bool first = true;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    const bool ok = first ? SSL_CTX_use_certificate(context, certificate) == 1
                          : SSL_CTX_add1_chain_cert(context, certificate) == 1;
    X509_free(certificate);
    if (!ok) break;
    first = false;
  }
  EVP_PKEY* pkey = PEM_read_bio_PrivateKey(key_bio.get(), nullptr, nullptr, nullptr);
  const bool fits = !first && pkey != nullptr && SSL_CTX_use_PrivateKey(context, pkey) == 1 &&
                    SSL_CTX_check_private_key(context) == 1;
  EVP_PKEY_free(pkey);
  ERR_clear_error();
  return fits;
}

}  // namespace

void TlsSource::SetUp(SSL_CTX* context) {
  const RestTls tls = Get();
  SetTrust(context, tls.ca);
  if (!tls.certificate.empty()) ShowCertificate(context, tls.certificate, tls.key);
}

void TlsSource::Close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

RestTls TlsSource::Get() {
  RestTls tls;
  tls.ca = "nothing is trusted";
  const std::lock_guard lock(mutex_);
  if (closed_) return tls;
  if (!ask_) {
    tls.ca = ca_;
    return tls;
  }
  try {
    return ask_();
  } catch (...) {
    return tls;
  }
}

}  // namespace parallelrun::rest_client
