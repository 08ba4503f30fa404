#include "cli/run/progress_poller.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/time.h"

namespace parallelrun {
namespace {

constexpr Duration kPoll = milliseconds(300);
constexpr Duration kCallLimit = seconds(5);

}  // namespace

ProgressPoller::ProgressPoller(std::unique_ptr<HttpClient> client,
                               std::function<void(nlohmann::json)> show)
    : client_(std::move(client)), show_(std::move(show)), thread_([this] { Run(); }) {}

ProgressPoller::~ProgressPoller() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  client_->Cancel();
  thread_.join();
}

void ProgressPoller::Drain() {
  {
    const std::lock_guard lock(mutex_);
    drain_ = true;
  }
  wake_.notify_all();
}

void ProgressPoller::Run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const bool drain = drain_;
    lock.unlock();
    HttpRequest request;
    request.path = "/v1/progress";
    if (drain) {
      request.method = "PUT";
      request.path = "/v1/control";
      request.body = R"({"drain": true})";
    }
    const Result<HttpResponse> response = client_->Send(std::move(request), kCallLimit);
    const bool answered = response.ok() && response->status == 200;
    if (answered) {
      nlohmann::json progress = nlohmann::json::parse(response->body, nullptr, false);
      if (progress.is_object()) show_(std::move(progress));
    }
    lock.lock();
    if (drain && answered) drain_ = false;
    wake_.wait_for(lock, kPoll, [this] { return stop_ || drain_; });
  }
}

}  // namespace parallelrun
