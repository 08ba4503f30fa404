// Internal to http/client: from a server's name to a connection that may carry a request.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/error.h"
#include "base/http/client/names.h"
#include "base/http/client/url.h"
#include "base/http/client/wire.h"
#include "base/time.h"

namespace parallelrun {

using SslContext = std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)>;

// What all TLS connections of a client are made with: whom they trust (http/trust.h), read once.
SslContext MakeClientContext(const std::string& ca_pem);

// Thread-safe.
class Connector {
 public:
  // `connect` counts for each address that is tried, `handshake` for the one that answered.
  Connector(const HttpUrl& url, const std::string& ca_pem, Duration connect, Duration handshake,
            const Cancellation& cancellation);

  // Tries the addresses in turn until `limit`. One that leads nowhere must not take the time of
  // those behind it: it has its share of what is left at most.
  // Errors, with the address in words: kTimeout, kUnavailable.
  Result<std::unique_ptr<Wire>> Connect(SteadyTime limit);
  // Ends a look-up of a name, which does not wait on a socket.
  void Cancel() { names_.Cancel(); }

 private:
  Result<Fd> ConnectTo(const Address& address, SteadyTime limit) const;
  Result<std::unique_ptr<Wire>> Secure(Fd socket, SteadyTime limit) const;

  const bool tls_;
  const std::string host_;
  const Duration connect_;
  const Duration handshake_;
  const Cancellation& cancellation_;
  const SslContext context_;
  Names names_;
};

}  // namespace parallelrun
