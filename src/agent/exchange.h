// One kind of call of an agent to its coordinator, at most one at a time, on a thread of its own:
// the HTTP client blocks, the loop must not.
//
// Thread-safety: made, used and destroyed on the loop's thread; the result is handed in there.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "base/event_loop.h"
#include "base/http/client.h"
#include "base/thread.h"

namespace parallelrun::agent {

class ExchangeThread {
 public:
  using OnResult = std::function<void(Result<HttpResponse>)>;

  // `client` is shared, and must outlive this.
  ExchangeThread(EventLoop& loop, HttpClient& client);
  // Waits for a call under way: cancel the client first. No result comes any more.
  ~ExchangeThread();
  ExchangeThread(const ExchangeThread&) = delete;
  ExchangeThread& operator=(const ExchangeThread&) = delete;

  // Only when no call is under way.
  void Send(HttpRequest request, Duration deadline, OnResult on_result);

 private:
  struct Call {
    HttpRequest request;
    Duration deadline;
    OnResult on_result;
  };
  void Run();

  EventLoop& loop_;
  HttpClient& client_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // on the loop's thread
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Call> call_;
  bool stop_ = false;
  Thread thread_;
};

}  // namespace parallelrun::agent
