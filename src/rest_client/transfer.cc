#include "rest_client/transfer.h"

#include <cpprest/streams.h>

#include <utility>

#include "base/escape.h"
#include "rest_client/thread.h"

namespace parallelrun::rest_client {
namespace {

constexpr size_t kMaxUnread = size_t{1} << 20;
// A cancelled call ends within milliseconds, but a name look-up cannot be cancelled: after this it
// is left to end by itself.
constexpr Duration kCancelGrace = milliseconds(200);

// The only way to make the library's handle of a stream buffer of one's own.
class Handle : public concurrency::streams::streambuf<uint8_t> {
 public:
  using Base = concurrency::streams::details::basic_streambuf<uint8_t>;
  explicit Handle(const std::shared_ptr<Base>& buffer) : streambuf(buffer) {}
};

Error ErrorOf(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const web::http::http_exception& e) {
    const bool timeout = e.error_code() == std::errc::timed_out;
    return {timeout ? Code::kTimeout : Code::kUnavailable,
            timeout ? "no byte for the idle time-out" : Printable(e.what(), kShown)};
  } catch (const std::exception& e) {
    return {Code::kInternal, Printable(e.what(), kShown)};
  } catch (...) {
    return {Code::kInternal, "unknown failure"};
  }
}

Error CancelledError() { return {Code::kUnavailable, "the call was cancelled"}; }

}  // namespace

concurrency::streams::ostream RestStream::Transfer::body() {
  return concurrency::streams::ostream(Handle(shared_from_this()));
}

void RestStream::Transfer::SetHead(HttpResponse head) {
  const std::lock_guard lock(mutex_);
  head_ = std::move(head);
  changed_.notify_all();
}

void RestStream::Transfer::SetDone(const std::exception_ptr& failure) {
  std::optional<Error> error;
  if (failure) error = ErrorOf(failure);
  const std::lock_guard lock(mutex_);
  failure_ = std::move(error);
  done_ = true;
  changed_.notify_all();
}

Result<HttpResponse> RestStream::Transfer::WaitForHead(
    std::chrono::steady_clock::time_point limit) {
  std::unique_lock lock(mutex_);
  const auto over = [this] { return done_ || cancelled_ || head_; };
  const bool in_time = changed_.wait_until(lock, limit, over);
  if (!cancelled_ && head_) return *head_;
  if (cancelled_) return CancelledError();
  if (!in_time) return Error{Code::kTimeout, ""};
  return failure_ ? *failure_ : Error{Code::kInternal, "no answer"};
}

Result<size_t> RestStream::Transfer::Read(std::string& out,
                                          std::chrono::steady_clock::time_point limit) {
  std::optional<Stop> writer;
  size_t written = 0;
  size_t taken = 0;
  {
    std::unique_lock lock(mutex_);
    const auto over = [this] { return done_ || cancelled_ || !body_.empty(); };
    const bool in_time = changed_.wait_until(lock, limit, over);
    if (cancelled_) return CancelledError();
    if (!in_time) return Error{Code::kTimeout, ""};
    if (body_.empty()) return failure_ ? Result<size_t>(*failure_) : Result<size_t>(0);
    taken = body_.size();
    if (out.empty()) {
      out.swap(body_);
    } else {
      out += body_;
    }
    body_.clear();
    writer = std::exchange(writer_, std::nullopt);
    written = writer_count_;
  }
  if (writer) writer->set(written);
  return taken;
}

void RestStream::Transfer::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

void RestStream::Transfer::End() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (done_) return;
  }
  PostToRestThread([self = std::static_pointer_cast<Transfer>(shared_from_this())] {
    self->source_.cancel();  // closes the connection
    self->LetWriterGo();     // to find it closed
  });
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kCancelGrace, [this] { return done_; });
}

void RestStream::Transfer::LetWriterGo() {
  std::optional<Stop> writer;
  size_t written = 0;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    writer = std::exchange(writer_, std::nullopt);
    written = writer_count_;
  }
  if (writer) writer->set(written);
}

pplx::task<RestStream::Transfer::int_type> RestStream::Transfer::_putc(uint8_t c) {
  return _putn(&c, 1).then([c](size_t) { return int_type{c}; });
}

pplx::task<size_t> RestStream::Transfer::_putn(const uint8_t* bytes, size_t count) {
  const std::lock_guard lock(mutex_);
  // What comes behind the end is thrown away. It must not fail: the library's thread would wait,
  // for a failed writer, for a task that only the same thread can run.
  if (ended_) return pplx::task_from_result(count);
  body_.append(reinterpret_cast<const char*>(bytes), count);
  changed_.notify_all();
  if (body_.size() <= kMaxUnread && !cancelled_) return pplx::task_from_result(count);
  writer_.emplace();
  writer_count_ = count;
  return pplx::create_task(*writer_);
}

}  // namespace parallelrun::rest_client
