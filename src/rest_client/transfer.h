// Internal to src/rest_client: one call of a RestClient on its way, between the thread that waits
// for it and cpprestsdk's, which write the body into it. Held by both, until whoever ends later.
#pragma once

#include <cpprest/http_client.h>

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/http/message.h"
#include "base/time.h"
#include "rest_client/client.h"

namespace parallelrun::rest_client {

// A stream buffer that takes bytes and makes the writer wait while nobody reads them. What the
// base class has for reading is not used: cpprestsdk only writes.
class RestStream::Transfer final
    : public concurrency::streams::details::streambuf_state_manager<uint8_t> {
 public:
  Transfer() : streambuf_state_manager(std::ios_base::out) {}

  // For the library's side.
  void SetHead(HttpResponse head);
  // Of the head or the body; null when all is well. An exception stays on the thread that threw it.
  void SetDone(const std::exception_ptr& failure);
  pplx::cancellation_token token() const { return source_.get_token(); }
  concurrency::streams::ostream body();

  // Waits for the head. On an error the transfer has ended.
  Result<HttpResponse> WaitForHead(std::chrono::steady_clock::time_point limit);
  // Appends what has come, waiting for a byte; 0 at the end. On kTimeout nothing has ended.
  Result<size_t> Read(std::string& out, std::chrono::steady_clock::time_point limit);
  // Wakes the waiting threads. Never blocks, and leaves the connection to End.
  void Cancel();
  // Closes the connection unless all was read, and waits a moment for the library to let go.
  // Never call it on the HTTP thread.
  void End();

 private:
  using Traits = concurrency::streams::char_traits<uint8_t>;
  using Stop = pplx::task_completion_event<size_t>;
  static pplx::task<int_type> Nothing() { return pplx::task_from_result<int_type>(Traits::eof()); }
  static pos_type Nowhere() { return static_cast<pos_type>(Traits::eof()); }
  void LetWriterGo();

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(size_t, std::ios_base::openmode) override {}
  size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return Nowhere(); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return Nowhere(); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return Nowhere();
  }
  bool acquire(uint8_t*&, size_t&) override { return false; }
  void release(uint8_t*, size_t) override {}
  pplx::task<int_type> _putc(uint8_t c) override;
  pplx::task<size_t> _putn(const uint8_t* bytes, size_t count) override;
  pplx::task<int_type> _bumpc() override { return Nothing(); }
  int_type _sbumpc() override { return Traits::eof(); }
  pplx::task<int_type> _getc() override { return Nothing(); }
  int_type _sgetc() override { return Traits::eof(); }
  pplx::task<int_type> _nextc() override { return Nothing(); }
  pplx::task<int_type> _ungetc() override { return Nothing(); }
  pplx::task<size_t> _getn(uint8_t*, size_t) override { return pplx::task_from_result<size_t>(0); }
  size_t _scopy(uint8_t*, size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  uint8_t* _alloc(size_t) override { return nullptr; }
  void _commit(size_t) override {}

  pplx::cancellation_token_source source_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool cancelled_ = false;  // nobody reads any more
  bool ended_ = false;      // the connection is closed
  bool done_ = false;
  std::optional<Error> failure_;
  std::optional<HttpResponse> head_;
  std::string body_;            // not read yet
  std::optional<Stop> writer_;  // waits until body_ is read
  size_t writer_count_ = 0;
};

}  // namespace parallelrun::rest_client
