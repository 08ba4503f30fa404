// Internal to src/rest_client: what a client's connections are made with.
#pragma once

#include <openssl/ssl.h>

#include <functional>
#include <mutex>
#include <string>

#include "rest_client/client.h"

namespace parallelrun::rest_client {

// Asks the client's owner what a connection is made with, until the client is gone: the library may
// be at a cancelled call for longer. Safe from every thread.
class TlsSource {
 public:
  explicit TlsSource(const RestClientOptions& options) : ca_(options.ca_pem), ask_(options.tls) {}

  // For each new connection, whose context trusts nobody yet. Does not throw. What cannot be used
  // makes the handshake fail.
  void SetUp(SSL_CTX* context);
  // Waits for a question on its way.
  void Close();

 private:
  RestTls Get();

  const std::string ca_;
  const std::function<RestTls()> ask_;
  std::mutex mutex_;
  bool closed_ = false;
};

}  // namespace parallelrun::rest_client
