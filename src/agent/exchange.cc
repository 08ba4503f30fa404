#include "agent/exchange.h"

#include <utility>

namespace parallelrun::agent {

ExchangeThread::ExchangeThread(EventLoop& loop, HttpClient& client)
    : loop_(loop), client_(client), thread_("exchange", [this] { Run(); }) {}

ExchangeThread::~ExchangeThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
  *alive_ = false;
}

void ExchangeThread::Send(HttpRequest request, Duration deadline, OnResult on_result) {
  {
    const std::lock_guard lock(mutex_);
    call_ = Call{std::move(request), deadline, std::move(on_result)};
  }
  changed_.notify_all();
}

void ExchangeThread::Run() {
  for (;;) {
    std::optional<Call> call;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || call_; });
      if (stop_) return;
      call.swap(call_);
    }
    // Shared: the loop's callbacks must be copyable.
    auto result = std::make_shared<Result<HttpResponse>>(
        client_.Send(std::move(call->request), call->deadline));
    loop_.Post([alive = alive_, result, on_result = std::move(call->on_result)] {
      if (*alive) on_result(std::move(*result));
    });
  }
}

}  // namespace parallelrun::agent
