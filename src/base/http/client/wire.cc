#include "base/http/client/wire.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace parallelrun {
namespace {

bool IsLater(int number) { return number == EAGAIN || number == EWOULDBLOCK || number == EINTR; }

// `number`: why, or 0 for an end without a word.
Error Broken(int number) {
  const bool closed = number == 0 || number == EPIPE || number == ECONNRESET;
  return {Code::kUnavailable, closed ? "the server closed the connection" : std::strerror(number)};
}

bool IsAddress(const std::string& host) {
  in6_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

}  // namespace

Status WaitOn(int socket, short events, SteadyTime limit, const Cancellation& cancellation) {
  std::array<pollfd, 2> waits{{{socket, events, 0}, {cancellation.fd(), POLLIN, 0}}};
  const auto left = std::max(limit - std::chrono::steady_clock::now(), SteadyTime::duration(0));
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(left);
  const timespec wait{whole.count(), static_cast<long>((left - whole).count())};
  const int ready = ppoll(waits.data(), waits.size(), &wait, nullptr);
  if (cancellation.cancelled()) return CancelledError();
  if (ready == 0) return Error{Code::kTimeout, ""};
  if (ready < 0 && errno != EINTR) return ErrnoError(errno, "wait for the connection");
  return {};
}

Result<Moved> Wire::Read(char* to, size_t size) {
  const ssize_t n = recv(socket(), to, size, 0);
  if (n > 0) return Moved{static_cast<size_t>(n), false};
  if (n == 0) return Moved{0, true};
  if (IsLater(errno)) return Moved{};
  return Broken(errno);
}

Result<Moved> Wire::Write(std::string_view bytes) {
  const ssize_t n = send(socket(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (n >= 0) return Moved{static_cast<size_t>(n), false};
  if (IsLater(errno)) return Moved{};
  return Broken(errno);
}

bool Wire::IsQuiet() {
  char byte = 0;
  return recv(socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && IsLater(errno);
}

Status Wire::Wait(bool read, bool write, SteadyTime limit) const {
  const int events = (read ? read_events_ : 0) | (write ? write_events_ : 0);
  return WaitOn(socket(), static_cast<short>(events), limit, cancellation_);
}

// OpenSSL's own way to a socket writes with a call that ends the process, by SIGPIPE, when the
// server has gone: ours does not.
BIO_METHOD* TlsWire::Method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "wire");
    BIO_meth_set_write(made, BioWrite);
    BIO_meth_set_read(made, BioRead);
    BIO_meth_set_ctrl(made, BioControl);
    return made;
  }();
  return method;
}

int TlsWire::BioWrite(BIO* bio, const char* bytes, int size) {
  auto& wire = *static_cast<TlsWire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t n = send(wire.socket(), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  if (n < 0 && IsLater(errno)) BIO_set_retry_write(bio);
  if (n < 0) wire.errno_ = errno;
  return static_cast<int>(n);
}

int TlsWire::BioRead(BIO* bio, char* to, int size) {
  auto& wire = *static_cast<TlsWire*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t n = recv(wire.socket(), to, static_cast<size_t>(size), 0);
  if (n < 0 && IsLater(errno)) BIO_set_retry_read(bio);
  if (n < 0) wire.errno_ = errno;
  if (n == 0) wire.end_ = true;
  if (n >= 0) wire.errno_ = 0;
  return static_cast<int>(n);
}

long TlsWire::BioControl(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_FLUSH) return 1;  // nothing is kept
  if (command == BIO_CTRL_EOF) return static_cast<TlsWire*>(BIO_get_data(bio))->end_ ? 1 : 0;
  return 0;
}

TlsWire::TlsWire(Fd socket, const Cancellation& cancellation, SSL_CTX* context,
                 const std::string& host)
    : Wire(std::move(socket), cancellation), ssl_(SSL_new(context), SSL_free) {
  BIO* bio = BIO_new(Method());
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);  // which owns it
  SSL_set_connect_state(ssl_.get());
  SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
  X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl_.get());
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (IsAddress(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(wanted, host.c_str());
  } else {
    X509_VERIFY_PARAM_set1_host(wanted, host.c_str(), host.size());
    // What the macro SSL_set_tlsext_host_name does, which casts in the style of C.
    SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(host.c_str()));
  }
}

Result<Moved> TlsWire::Stopped(int result, short& events) {
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: events = POLLIN; return Moved{};
    case SSL_ERROR_WANT_WRITE: events = POLLOUT; return Moved{};
    case SSL_ERROR_ZERO_RETURN: return Moved{0, true};
    case SSL_ERROR_SYSCALL: return Broken(errno_);
    default: break;
  }
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  if (ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return Broken(0);
  if (const long verdict = SSL_get_verify_result(ssl_.get()); verdict != X509_V_OK) {
    return Error{Code::kUnavailable, std::string("the server's certificate is not trusted: ") +
                                         X509_verify_cert_error_string(verdict)};
  }
  const char* reason = ERR_reason_error_string(error);
  return Error{Code::kUnavailable, reason == nullptr ? "TLS failed" : reason};
}

Status TlsWire::Handshake(SteadyTime limit) {
  while (true) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return {};
    short events = POLLIN;
    const Result<Moved> moved = Stopped(result, events);
    if (!moved) return moved.error();
    if (moved->end) return Broken(0);
    read_events_ = events;
    const Status waited = Wait(true, false, limit);
    read_events_ = POLLIN;
    if (!waited.ok()) return waited;
  }
}

Result<Moved> TlsWire::Read(char* to, size_t size) {
  ERR_clear_error();
  read_events_ = POLLIN;
  Moved moved;
  const int result = SSL_read_ex(ssl_.get(), to, size, &moved.bytes);
  return result == 1 ? moved : Stopped(result, read_events_);
}

Result<Moved> TlsWire::Write(std::string_view bytes) {
  ERR_clear_error();
  write_events_ = POLLOUT;
  Moved moved;
  const int result = SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &moved.bytes);
  return result == 1 ? moved : Stopped(result, write_events_);
}

bool TlsWire::IsQuiet() { return SSL_has_pending(ssl_.get()) == 0 && Wire::IsQuiet(); }

}  // namespace parallelrun
