#include "cli/run/progress_poller.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/json.h"
#include "base/time.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr Duration kPoll = milliseconds(300);
constexpr Duration kCallLimit = seconds(5);

}  // namespace

ProgressPoller::ProgressPoller(std::unique_ptr<rest_client::RestClient> client, Hears hears)
    : client_(std::move(client)),
      hears_(std::move(hears)),
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
      nlohmann::json body = ParseJson(response->body).value_or(nullptr);
      const nlohmann::json& message = lenient::AtPath(body, "/error/message");
      if (answered && body.is_object()) {
        AskForFailures(body);
        hears_.progress(std::move(body));
      } else if (!answered && message.is_string()) {
        hears_.wait(message.get<std::string>());
      }
    }
    lock.lock();
    if (drain && answered) drain_ = false;
    wake_.wait_for(lock, kPoll, [this] { return stop_ || drain_; });
  }
}

void ProgressPoller::AskForFailures(const nlohmann::json& progress) {
  const uint64_t epoch = lenient::Unsigned(progress, "epoch");
  if (epoch != epoch_) last_failure_ = 0;
  epoch_ = epoch;
  if (lenient::Unsigned(progress, "failedAttempts") == 0) return;
  for (bool more = true; more;) {
    HttpRequest request;
    request.path = "/v1/failures";
    request.query = fmt::format("after={}", last_failure_);
    const Result<HttpResponse> response = client_->Send(std::move(request), kCallLimit);
    if (!response.ok() || response->status != 200) return;
    std::istringstream lines(response->body);
    std::string line;
    std::getline(lines, line);
    const json head = ParseJson(line).value_or(nullptr);
    if (lenient::Unsigned(head, "epoch") != epoch) return;
    last_failure_ = lenient::Unsigned(head, "last");
    more = lenient::Boolean(head, "more");
    while (std::getline(lines, line)) {
      Result<FailedLine> failed = ReadFailedLine(line);
      if (failed.ok()) hears_.failure(std::move(*failed));
    }
  }
}

}  // namespace parallelrun::cli
