#include "cli/run/progress_poller.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/time.h"

namespace parallelrun {
namespace {

constexpr Duration kPoll = milliseconds(300);
constexpr Duration kCallLimit = seconds(5);

}  // namespace

ProgressPoller::ProgressPoller(std::unique_ptr<RestClient> client,
                               std::function<void(nlohmann::json)> show,
                               std::function<void(std::string)> wait)
    : client_(std::move(client)),
      show_(std::move(show)),
      wait_(std::move(wait)),
      thread_("progress", [this] { Run(); }) {}

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
    if (response.ok() && (answered || response->status == 503)) {
      nlohmann::json body = nlohmann::json::parse(response->body, nullptr, false);
      const nlohmann::json::json_pointer message("/error/message");
      if (answered && body.is_object()) {
        show_(std::move(body));
      } else if (!answered && body.contains(message) && body[message].is_string()) {
        wait_(body[message].get<std::string>());
      }
    }
    lock.lock();
    if (drain && answered) drain_ = false;
    wake_.wait_for(lock, kPoll, [this] { return stop_ || drain_; });
  }
}

}  // namespace parallelrun
