#include "base/http/trust.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

namespace parallelrun {
namespace {

namespace fs = std::filesystem;

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

// Where systems have their certificates that are built otherwise than Debian.
constexpr std::array kElsewhere = {"/etc/ssl/certs/ca-certificates.crt",  // Alpine, Arch, Gentoo
                                   "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, Red Hat
                                   "/etc/ssl/ca-bundle.pem",              // SUSE
                                   "/etc/ssl/cert.pem"};                  // Alpine, the BSDs

// Whether OpenSSL's own place has something, or the user has named another one.
bool OpenSslHasPlace() {
  std::error_code error;
  for (const char* name : {X509_get_default_cert_file_env(), X509_get_default_cert_dir_env()}) {
    if (std::getenv(name) != nullptr) return true;  // NOLINT(concurrency-mt-unsafe): nobody sets it
  }
  if (fs::is_regular_file(X509_get_default_cert_file(), error)) return true;
  const fs::directory_iterator folder(X509_get_default_cert_dir(), error);
  return !error && folder != fs::directory_iterator();
}

// Of the bundle that this program lies in (script/bundle): an image may have none at all.
std::string OwnCertificates() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return program.parent_path().parent_path() / "ca-certificates.crt";
}

void TrustSystem(SSL_CTX* context) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  X509_STORE_set_default_paths(store);
  if (!OpenSslHasPlace()) {
    std::vector<std::string> places(kElsewhere.begin(), kElsewhere.end());
    places.push_back(OwnCertificates());
    std::error_code error;
    for (const std::string& place : places) {
      if (fs::is_regular_file(place, error) && X509_STORE_load_file(store, place.c_str()) == 1) {
        break;
      }
    }
  }
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
