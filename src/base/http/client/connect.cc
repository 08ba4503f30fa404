#include "base/http/client/connect.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/http/trust.h"

namespace parallelrun {
namespace {

SteadyTime Now() { return std::chrono::steady_clock::now(); }

// `error`, which says how long it waited if it is a time-out without words.
Error InWords(Error error, SteadyTime began, const char* what, const std::string& place) {
  if (error.code == Code::kTimeout && error.message.empty()) {
    const auto took = std::chrono::duration_cast<Duration>(Now() - began);
    error.message = fmt::format("{} within {}", what, HumanDuration(took));
  }
  return error.With(place);
}

}  // namespace

SslContext MakeClientContext(const std::string& ca_pem) {
  SslContext context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SetTrust(context.get(), ca_pem);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE |
                                      SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // A record in one system call, not its five bytes of length first.
  SSL_CTX_set_read_ahead(context.get(), 1);
  return context;
}

Connector::Connector(const HttpUrl& url, const std::string& ca_pem, Duration connect,
                     Duration handshake, const Cancellation& cancellation)
    : tls_(url.tls),
      host_(url.host),
      connect_(connect),
      handshake_(handshake),
      cancellation_(cancellation),
      context_(url.tls ? MakeClientContext(ca_pem) : SslContext(nullptr, SSL_CTX_free)),
      names_(url.host, url.port) {}

Result<std::unique_ptr<Wire>> Connector::Connect(SteadyTime limit) {
  const Result<Addresses> addresses = names_.Find(limit);
  if (!addresses) return addresses.error();
  Error error{Code::kUnavailable, "no address"};
  for (size_t i = 0; i < addresses->size(); ++i) {
    const Address& address = (*addresses)[i];
    const SteadyTime began = Now();
    const auto share = (limit - began) / static_cast<int64_t>(addresses->size() - i);
    Result<Fd> socket = ConnectTo(address, began + std::min<SteadyTime::duration>(share, connect_));
    if (!socket) {
      error = InWords(socket.error(), began, "no connection", "connect to " + address.Text());
      if (cancellation_.cancelled()) break;
      continue;
    }
    if (!tls_) return std::make_unique<Wire>(std::move(*socket), cancellation_);
    const SteadyTime connected = Now();
    Result<std::unique_ptr<Wire>> wire =
        Secure(std::move(*socket), std::min(limit, connected + handshake_));
    if (wire) return wire;
    return InWords(wire.error(), connected, "not done", "TLS handshake with " + address.Text());
  }
  return error;
}

Result<Fd> Connector::ConnectTo(const Address& address, SteadyTime limit) const {
  Fd fd(socket(address.bytes.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.ok()) return ErrnoError(errno, "make a socket");
  const int on = 1;
  setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  int failed = 0;
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0) {
    failed = errno;
  }
  if (failed == EINPROGRESS) {
    // Writable once it is connected, or has failed.
    if (Status s = WaitOn(fd.get(), POLLOUT, limit, cancellation_); !s.ok()) return s.error();
    socklen_t size = sizeof(failed);
    getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
  }
  if (failed != 0) return Error{Code::kUnavailable, std::strerror(failed)};
  return fd;
}

Result<std::unique_ptr<Wire>> Connector::Secure(Fd socket, SteadyTime limit) const {
  auto wire = std::make_unique<TlsWire>(std::move(socket), cancellation_, context_.get(), host_);
  if (Status s = wire->Handshake(limit); !s.ok()) return s.error();
  return std::unique_ptr<Wire>(std::move(wire));
}

}  // namespace parallelrun
