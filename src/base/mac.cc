#include "base/mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdlib>

#include "base/hex.h"

namespace parallelrun {
namespace {

std::string Taken(const unsigned char* digest, unsigned int size) {
  return {reinterpret_cast<const char*>(digest), size};
}

}  // namespace

std::string HmacSha256(std::string_view key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const unsigned char* made =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest, &size);
  if (made == nullptr) std::abort();  // only out of memory, or an OpenSSL without SHA-256
  return Taken(digest, size);
}

std::string HmacSha256Hex(std::string_view key, std::string_view text) {
  return Hex(HmacSha256(key, text));
}

std::string Sha256Hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const int made = EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  if (made != 1) std::abort();  // as above
  return Hex(Taken(digest, size));
}

bool SecureEqual(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace parallelrun
