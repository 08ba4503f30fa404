// A port of this machine whose connections are carried on as TLS: who speaks plainly to 127.0.0.1
// there speaks to a server of which only the certificate is known. The bytes are not looked at.
//
// Thread-safety: none; made, used and destroyed on the loop's thread (or while it does not run).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/event_loop.h"
#include "base/time.h"

namespace parallelrun {

struct TlsTunnelOptions {
  uint16_t port = 0;                    // of 127.0.0.1, to listen on; 0: the system chooses
  std::string ca_pem;                   // the only certificates trusted
  std::string server_name;              // that the server's certificate must carry
  size_t max_connections = 64;          // one more is closed at once
  Duration open_timeout = seconds(10);  // to connect, and for the handshake
  // Hears why a connection could not be carried. Must not destroy the tunnel.
  std::function<void(const Error&)> on_error = [](const Error&) {};
};

class TlsTunnel {
 public:
  // kInvalid: there is no certificate in `ca_pem`.
  static Result<std::unique_ptr<TlsTunnel>> Start(EventLoop& loop, TlsTunnelOptions options);
  // Closes everything at once.
  ~TlsTunnel();

  uint16_t port() const;
  // Where connections lead that come from now on, a port of 127.0.0.1. 0, as at first: nowhere,
  // they are closed.
  void LeadTo(uint16_t port);

 private:
  struct State;
  explicit TlsTunnel(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace parallelrun
