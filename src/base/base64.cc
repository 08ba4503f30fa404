#include "base/base64.h"

#include <openssl/evp.h>

namespace parallelrun {

std::string EncodeBase64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');  // with OpenSSL's final zero
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

std::optional<std::string> DecodeBase64(std::string_view text) {
  std::string packed;
  for (const char c : text) {
    if (c != '\n' && c != '\r' && c != ' ' && c != '\t') packed += c;
  }
  if (packed.size() % 4 != 0) return std::nullopt;
  if (packed.empty()) return std::string();
  const size_t padding = packed.ends_with("==") ? 2 : packed.ends_with("=") ? 1 : 0;
  // OpenSSL takes padding for zeros anywhere.
  if (packed.find('=') < packed.size() - padding) return std::nullopt;
  std::string out(packed.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(packed.data()),
                                   static_cast<int>(packed.size()));
  if (size < 0) return std::nullopt;
  out.resize(static_cast<size_t>(size) - padding);
  return out;
}

}  // namespace parallelrun
