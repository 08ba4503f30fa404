// Internal to the rooms that speak HTTP as clients: whom their TLS connections trust.
#pragma once

#include <openssl/ssl.h>

#include <string>

namespace parallelrun {

// Whether there is a certificate in it.
bool IsUsablePem(const std::string& pem);

// Makes `context` trust the PEM certificates `ca` and nobody else, or those of the system where it
// is empty (those that lie in the program's bundle where the system has none), and speak TLS 1.2 or
// later. With a text without a certificate nobody is trusted. Reads files; any thread.
void SetTrust(SSL_CTX* context, const std::string& ca);

}  // namespace parallelrun
