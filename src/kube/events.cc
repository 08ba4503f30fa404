#include "kube/events.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace parallelrun::kube {
namespace {

constexpr CallOptions kEventCall{seconds(5), 0};

const Resource& Events() {
  static const Resource events{"", "v1", "events"};
  return events;
}

}  // namespace

EventRecorder::EventRecorder(Client& client, std::string component,
                             std::shared_ptr<const Clock> clock)
    : client_(client),
      clock_(std::move(clock)),
      correlator_(std::move(component)),
      thread_("events", [this] { Run(); }) {}

EventRecorder::~EventRecorder() { Stop(); }

void EventRecorder::Record(Event event) {
  const std::lock_guard lock(mutex_);
  if (stop_ || queue_.size() >= kEventQueue) {
    ++dropped_;
    return;
  }
  queue_.push_back(std::move(event));
  wake_.notify_all();
}

uint64_t EventRecorder::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void EventRecorder::Stop(Duration flush) {
  {
    std::unique_lock lock(mutex_);
    if (!stop_) {
      wake_.wait_for(lock, flush, [this] { return queue_.empty() && !busy_; });
    }
    stop_ = true;
    wake_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void EventRecorder::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    const Event event = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    if (const auto write = correlator_.Correlate(event, clock_->Now(), clock_->WallNow())) {
      Write(*write);
    }
    lock.lock();
    busy_ = false;
    wake_.notify_all();
  }
}

void EventRecorder::Write(const EventCorrelator::Write& write) {
  bool create = write.create;
  for (int attempt = 0; attempt < kEventTries; ++attempt) {
    const ApiResult<nlohmann::json> answer =
        create
            ? client_.Create(Events(), write.object, kEventCall)
            : client_.Patch(Events(), write.name, PatchKind::kMerge, write.patch, "", kEventCall);
    if (answer.ok()) return;
    const ApiError& error = answer.error();
    if (!create && error.NotFound()) {  // events live an hour
      create = true;
      continue;
    }
    if (create && error.AlreadyExists()) return;  // an earlier try did arrive
    // The event is at fault, or its namespace is going: it will not be taken later either.
    if (error.status != 0 && !error.Transient()) {
      spdlog::warn("event {}: {}", TextAt(write.object, "/reason"), error.message);
      return;
    }
    if (!Wait(kEventRetry)) return;
  }
  spdlog::warn("event {} about {} could not be written", TextAt(write.object, "/reason"),
               TextAt(write.object, "/involvedObject/name"));
}

bool EventRecorder::Wait(Duration duration) {
  std::unique_lock lock(mutex_);
  return !wake_.wait_for(lock, duration, [this] { return stop_; });
}

}  // namespace parallelrun::kube
