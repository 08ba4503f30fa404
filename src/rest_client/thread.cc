#include "rest_client/thread.h"

// clang-format off
#include <openssl/ssl.h>

#include <utility>

// Behind <utility>, which Boost 1.74 forgets to include with C++20.
#include <pplx/threadpool.h>
// clang-format on

#include "base/thread.h"
#include "rest_client/client.h"

namespace parallelrun::rest_client {
namespace {

class RestThread {
 public:
  RestThread() {
    // What is made first is torn down last at exit: OpenSSL, the library's pool, this thread.
    OPENSSL_init_ssl(0, nullptr);
    // Without threads of its own, so that this one can finish the pool's work at the end. Throws if
    // something has used the pool before; nothing does.
    crossplat::threadpool::initialize_with_threads(0);
    thread_ = Thread("http client", [this] { service().run(); });
  }
  ~RestThread() {
    service().stop();
    thread_.join();
    // The pool would forget what it still holds, and leak it.
    service().restart();
    while (service().poll() > 0) {
    }
  }
  RestThread(const RestThread&) = delete;
  RestThread& operator=(const RestThread&) = delete;

  static RestThread& Instance() {
    static RestThread thread;
    return thread;
  }
  boost::asio::io_service& service() { return crossplat::threadpool::shared_instance().service(); }

 private:
  Thread thread_;
};

}  // namespace

void PostToRestThread(std::function<void()> work) {
  RestThread::Instance().service().post(std::move(work));
}

void InitRestThread() { RestThread::Instance(); }

}  // namespace parallelrun::rest_client
