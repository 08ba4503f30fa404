// A watch's stream of events, taken apart: bytes -> lines -> events. Bounded: a line of at most
// 8 MiB (an object in etcd has at most about 1.5 MiB), JSON of at most 128 levels.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/time.h"
#include "kube/api_error.h"
#include "rest_client/client.h"

namespace parallelrun::kube {

inline constexpr size_t kMaxWatchLine = size_t{8} * 1024 * 1024;

// Cuts a stream into lines that ended in '\n'. Pure; not thread-safe.
class LineSplitter {
 public:
  explicit LineSplitter(size_t max_line = kMaxWatchLine) : max_line_(max_line) {}

  // Where the next bytes go.
  std::string& buffer() { return buffer_; }
  // The next whole line without its end, empty lines left out; nothing when there is none yet.
  // Valid until the buffer changes.
  std::optional<std::string_view> Next();
  // The line that has begun is longer than the limit: the stream cannot be read on.
  bool TooLong() const { return buffer_.size() - begin_ > max_line_; }
  // Bytes of a line that has not ended.
  size_t pending() const { return buffer_.size() - begin_; }

 private:
  const size_t max_line_;
  std::string buffer_;
  size_t begin_ = 0;  // of the line to come
  size_t seen_ = 0;   // no '\n' before this
};

enum class WatchEventType { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type;
  nlohmann::json object;  // of kError: a metav1.Status
};

// One line of a watch; nothing when it is not an event.
std::optional<WatchEvent> ParseWatchEvent(std::string_view line);

// Where a reflector's events come from. Next is for one thread; Cancel for any.
class EventSource {
 public:
  virtual ~EventSource() = default;
  // The next event. Nothing: the server ended the stream, as it does when the watch's time is over.
  // Errors: with status 0 kUnavailable (the stream broke, or Cancel), kTimeout (silence), kCorrupt
  // (a line too long, or not an event); otherwise what an error event within the stream said.
  virtual ApiResult<std::optional<WatchEvent>> Next() = 0;
  // Makes Next return an error at once.
  virtual void Cancel() = 0;
};

// A watch in progress.
class WatchStream final : public EventSource {
 public:
  // `call` is for messages: "watch pods". No byte for `silence_timeout` is an error.
  WatchStream(std::unique_ptr<rest_client::RestStream> stream, std::string call,
              Duration silence_timeout);
  ApiResult<std::optional<WatchEvent>> Next() override;
  void Cancel() override { stream_->Cancel(); }

 private:
  std::unique_ptr<rest_client::RestStream> stream_;
  const std::string call_;
  const Duration silence_timeout_;
  LineSplitter lines_;
};

}  // namespace parallelrun::kube
