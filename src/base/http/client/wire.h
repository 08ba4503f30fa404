// Internal to http/client: one connection, plain or TLS, and the waits on it. Its socket does not
// block: what cannot go on now says so, and Wait waits for that and for the client's cancellation
// in one system call, on the thread of the caller. For one thread at a time.
#pragma once

#include <openssl/ssl.h>
#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "base/http/client/cancellation.h"

namespace parallelrun {

using SteadyTime = std::chrono::steady_clock::time_point;

// What a Read or a Write came to. Neither bytes nor the end: not now, Wait tells when.
struct Moved {
  size_t bytes = 0;
  bool end = false;  // of a Read: nothing more will come, and the other side said so
};

// Waits until the socket is ready for one of `events`; may return early. Errors: kTimeout without
// words, kUnavailable (cancelled).
Status WaitOn(int socket, short events, SteadyTime limit, const Cancellation& cancellation);

class Wire {
 public:
  Wire(Fd socket, const Cancellation& cancellation)
      : socket_(std::move(socket)), cancellation_(cancellation) {}
  virtual ~Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  // Errors: kUnavailable (reset, cut, not TLS any more).
  virtual Result<Moved> Read(char* to, size_t size);
  virtual Result<Moved> Write(std::string_view bytes);
  // Whether neither a byte nor the end waits to be read: what an idle connection must be to carry
  // another request. One that its server has closed meanwhile is found out here.
  virtual bool IsQuiet();

  // WaitOn, until a Read or a Write, whichever is asked for, that moved nothing may move something.
  Status Wait(bool read, bool write, SteadyTime limit) const;

 protected:
  int socket() const { return socket_.get(); }
  // What the socket must be ready for: TLS may have to write to read on.
  short read_events_ = POLLIN;
  short write_events_ = POLLOUT;

 private:
  const Fd socket_;
  const Cancellation& cancellation_;
};

// TLS over the socket, which is connected. The handshake is the first thing to do.
class TlsWire final : public Wire {
 public:
  // `host`: the name, or the address, that the server's certificate must carry.
  TlsWire(Fd socket, const Cancellation& cancellation, SSL_CTX* context, const std::string& host);

  // Errors: kTimeout without words, kUnavailable (not trusted, cut, cancelled).
  Status Handshake(SteadyTime limit);

  Result<Moved> Read(char* to, size_t size) override;
  Result<Moved> Write(std::string_view bytes) override;
  bool IsQuiet() override;

 private:
  static BIO_METHOD* Method();
  static int BioWrite(BIO* bio, const char* bytes, int size);
  static int BioRead(BIO* bio, char* to, int size);
  static long BioControl(BIO* bio, int command, long number, void* pointer);
  // After an OpenSSL call on ssl_ that came to nothing. `events`: those of the call.
  Result<Moved> Stopped(int result, short& events);

  const std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
  int errno_ = 0;     // of the socket
  bool end_ = false;  // of what the socket gives
};

}  // namespace parallelrun
