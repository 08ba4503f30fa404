#include "kube/reflector.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/random.h"

namespace parallelrun::kube {
namespace {

double SystemRandom() {
  return static_cast<double>(RandomU64() >> 11) * 0x1p-53;  // 53 bits: all that a double holds
}

bool EndsInitialEvents(const nlohmann::json& bookmark) {
  return TextAt(bookmark, "/metadata/annotations/k8s.io~1initial-events-end") == "true";
}

bool HasName(const nlohmann::json& object) { return !TextAt(object, "/metadata/name").empty(); }

ReflectorOptions WithDefaults(ReflectorOptions options) {
  if (!options.clock) options.clock = std::make_shared<SystemClock>();
  if (!options.random) options.random = SystemRandom;
  return options;
}

ApiError LocalError(Code code, std::string message) {
  return ApiErrorOf(Error{code, std::move(message)});
}

}  // namespace

Reflector::Reflector(ListWatcher& source, ReflectorSink& sink, ReflectorOptions options)
    : source_(source),
      sink_(sink),
      options_(WithDefaults(std::move(options))),
      watch_list_(options_.watch_list) {}

void Reflector::Run() {
  Next next = Next::kList;
  while (!stopped()) {
    if (next == Next::kList) {
      if (ListOnce()) next = Next::kWatch;
    } else {
      next = WatchOnce();
    }
  }
  Close(std::move(stream_));
}

void Reflector::Stop() {
  const std::lock_guard lock(mutex_);
  stop_ = true;
  if (current_ != nullptr) current_->Cancel();
  wake_.notify_all();
}

// False: it failed, and has backed off.
bool Reflector::ListOnce() {
  const bool listed = watch_list_ ? WatchList() : ListPages();
  if (!listed) return false;
  const std::lock_guard lock(mutex_);
  ++stats_.lists;
  return true;
}

bool Reflector::ListPages() {
  sink_.BeginStage();
  std::string token;
  int limit = options_.page_limit;
  while (!stopped()) {
    const ApiResult<ListPage> page = source_.List(token, limit);
    if (!page.ok()) {
      const ApiError& error = page.error();
      if (error.Expired() && !token.empty()) {  // the token was too old: once more, in one piece
        token.clear();
        limit = 0;
        sink_.BeginStage();
        continue;
      }
      BackOff(error);
      return false;
    }
    for (const nlohmann::json& object : page->items) {
      if (HasName(object)) sink_.Stage(object);
    }
    token = page->continue_token;
    if (!token.empty()) continue;
    if (page->resource_version.empty()) {
      BackOff(LocalError(Code::kCorrupt, "the list has no resourceVersion"));
      return false;
    }
    resource_version_ = page->resource_version;
    sink_.CommitStage(resource_version_);
    Healthy();
    return true;
  }
  return false;
}

// The same by a watch that begins with all objects there are, one by one.
bool Reflector::WatchList() {
  std::optional<ApiError> error;
  std::unique_ptr<EventSource> source = Open({"", true, WatchTimeout()}, error);
  sink_.BeginStage();
  while (source && !stopped()) {
    ApiResult<std::optional<WatchEvent>> next = source->Next();
    if (!next.ok()) {
      error = next.error();
      break;
    }
    if (!next->has_value()) {
      error = LocalError(Code::kUnavailable, "the watch ended before all objects had come");
      break;
    }
    const WatchEvent& event = **next;
    if (event.type == WatchEventType::kBookmark) {
      if (!EndsInitialEvents(event.object)) continue;
      resource_version_ = TextAt(event.object, "/metadata/resourceVersion");
      sink_.CommitStage(resource_version_);
      Healthy();
      stream_ = std::move(source);
      return true;
    }
    if (!HasName(event.object)) continue;
    if (event.type == WatchEventType::kDeleted) {
      sink_.Unstage(event.object);
    } else {
      sink_.Stage(event.object);
    }
  }
  Close(std::move(source));
  if (stopped() || !error) return false;
  // What a server says that does not offer this; others may mean this request only.
  if (error->status == 400 || error->status == 422) watch_list_ = false;
  if (error->Transient() || error->Expired()) {
    BackOff(*error);
    return false;
  }
  Note(*error);
  return ListPages();
}

Reflector::Next Reflector::WatchOnce() {
  std::unique_ptr<EventSource> source = std::move(stream_);
  const Instant begun = options_.clock->Now();
  if (!source) {
    std::optional<ApiError> error;
    source = Open({resource_version_, false, WatchTimeout()}, error);
    if (!source) return error ? AfterError(*error) : Next::kWatch;
  }
  uint64_t events = 0;
  std::optional<ApiError> error;
  while (!stopped()) {
    ApiResult<std::optional<WatchEvent>> next = source->Next();
    if (!next.ok()) {
      error = next.error();
      break;
    }
    if (!next->has_value()) {
      if (events == 0 && options_.clock->Now() - begun < kShortWatch) {
        error = LocalError(Code::kUnavailable, "the watch ended at once without an event");
      }
      break;
    }
    ++events;
    Apply(**next);
  }
  Close(std::move(source));
  if (stopped() || !error) return Next::kWatch;
  return AfterError(*error);
}

void Reflector::Apply(const WatchEvent& event) {
  if (event.type != WatchEventType::kBookmark) {
    if (!HasName(event.object)) return;
    if (event.type == WatchEventType::kDeleted) {
      sink_.Remove(event.object);
    } else {
      sink_.Upsert(event.object);
    }
  }
  const std::string version = TextAt(event.object, "/metadata/resourceVersion");
  if (!version.empty()) {
    resource_version_ = version;
    sink_.Reached(version);
  }
  expired_in_a_row_ = 0;
  const std::lock_guard lock(mutex_);
  ++stats_.events;
  stats_.last_error.clear();
}

// A watch could not begin or broke. Whoever answers nothing, or 429 or 5xx, may go on from the
// same resourceVersion later: a list would only add to its load.
Reflector::Next Reflector::AfterError(const ApiError& error) {
  const bool goes_on = error.status == 0 ? error.code != Code::kCorrupt
                                         : error.Transient() && !error.TooLargeResourceVersion();
  if (error.Expired()) {
    Note(error);  // at once: this is how a server says that it has forgotten so old a version
    expired_in_a_row_ += 1;
    if (expired_in_a_row_ == 1) return Next::kList;
  }
  BackOff(error);
  return goes_on ? Next::kWatch : Next::kList;
}

std::unique_ptr<EventSource> Reflector::Open(const WatchOptions& options,
                                             std::optional<ApiError>& error) {
  ApiResult<std::unique_ptr<EventSource>> opened = source_.Watch(options);
  if (!opened.ok()) {
    error = opened.error();
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  ++stats_.watches;
  current_ = opened->get();
  if (stop_) current_->Cancel();
  return std::move(*opened);
}

void Reflector::Close(std::unique_ptr<EventSource> source) {
  {
    const std::lock_guard lock(mutex_);
    current_ = nullptr;
  }
  source.reset();
}

Duration Reflector::WatchTimeout() {
  return kMinWatch +
         std::chrono::duration_cast<Duration>((kMaxWatch - kMinWatch) * options_.random());
}

void Reflector::BackOff(const ApiError& error) {
  if (stopped()) return;
  Note(error);
  const Instant now = options_.clock->Now();
  if (last_backoff_ && now - *last_backoff_ > kBackoffReset) backoff_ = kMinBackoff;
  last_backoff_ = now;
  Duration wait = backoff_ + std::chrono::duration_cast<Duration>(backoff_ * options_.random());
  backoff_ = std::min(backoff_ * 2, kMaxBackoff);
  if (error.retry_after) wait = std::max(wait, *error.retry_after);
  Wait(wait);
}

void Reflector::Wait(Duration duration) {
  if (options_.sleep) {
    options_.sleep(duration);
    return;
  }
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, duration, [this] { return stop_; });
}

void Reflector::Note(const ApiError& error) {
  if (error.Expired()) {
    spdlog::info("{}: {}; listing again", options_.name, error.message);
  } else {
    spdlog::warn("{}: {}", options_.name, error.message);
  }
  const std::lock_guard lock(mutex_);
  ++stats_.errors;
  stats_.last_error = error.message;
}

void Reflector::Healthy() {
  const std::lock_guard lock(mutex_);
  stats_.last_error.clear();
}

ReflectorStats Reflector::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

bool Reflector::stopped() const {
  const std::lock_guard lock(mutex_);
  return stop_;
}

}  // namespace parallelrun::kube
