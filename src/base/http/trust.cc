#include "base/http/trust.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

namespace parallelrun {
namespace {

// Trusts the PEM certificates and nothing else. False if there is none in it.
bool TrustOnly(SSL_CTX* context, const std::string& pem) {
  X509_STORE* store = X509_STORE_new();
  if (store == nullptr) return false;
  SSL_CTX_set_cert_store(context, store);  // takes ownership
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  int count = 0;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    count += X509_STORE_add_cert(store, certificate);
    X509_free(certificate);
  }
  ERR_clear_error();  // the end of the text is left there as an error, for others to find
  return count > 0;
}

void TrustSystem(SSL_CTX* context) {
  X509_STORE_set_default_paths(SSL_CTX_get_cert_store(context));
  ERR_clear_error();  // without any, the handshake tells
}

}  // namespace

bool IsUsablePem(const std::string& pem) {
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                             SSL_CTX_free);
  return context && TrustOnly(context.get(), pem);
}

void SetTrust(SSL_CTX* context, const std::string& ca) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  if (ca.empty()) {
    TrustSystem(context);
  } else {
    TrustOnly(context, ca);
  }
}

}  // namespace parallelrun
