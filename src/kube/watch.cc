#include "kube/watch.h"

#include <algorithm>
#include <utility>

#include "base/escape.h"
#include "base/json.h"
#include "kube/resource.h"

namespace parallelrun::kube {
namespace {

ApiError Broken(Code code, const std::string& call, const std::string& what) {
  ApiError error;
  error.code = code;
  error.message = call + ": " + what;
  return error;
}

}  // namespace

std::optional<std::string_view> LineSplitter::Next() {
  while (true) {
    const size_t end = buffer_.find('\n', std::max(seen_, begin_));
    if (end == std::string::npos) {
      // Only now, so that the views handed out before stay valid until the caller reads on.
      buffer_.erase(0, begin_);
      begin_ = 0;
      seen_ = buffer_.size();
      return std::nullopt;
    }
    std::string_view line(buffer_.data() + begin_, end - begin_);
    begin_ = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) return line;
  }
}

std::optional<WatchEvent> ParseWatchEvent(std::string_view line) {
  std::optional<nlohmann::json> parsed = ParseJson(line);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const std::string type = TextAt(*parsed, "/type");
  const auto object = parsed->find("object");
  if (object == parsed->end() || !object->is_object()) return std::nullopt;
  WatchEvent event{WatchEventType::kError, std::move(*object)};
  if (type == "ADDED") {
    event.type = WatchEventType::kAdded;
  } else if (type == "MODIFIED") {
    event.type = WatchEventType::kModified;
  } else if (type == "DELETED") {
    event.type = WatchEventType::kDeleted;
  } else if (type == "BOOKMARK") {
    event.type = WatchEventType::kBookmark;
  } else if (type != "ERROR") {
    return std::nullopt;
  }
  return event;
}

WatchStream::WatchStream(std::unique_ptr<rest_client::RestStream> stream, std::string call,
                         Duration silence_timeout)
    : stream_(std::move(stream)), call_(std::move(call)), silence_timeout_(silence_timeout) {}

ApiResult<std::optional<WatchEvent>> WatchStream::Next() {
  while (true) {
    if (const std::optional<std::string_view> line = lines_.Next()) {
      // Without this check a whole line in one piece could be longer than the limit.
      if (line->size() > kMaxWatchLine)
        return Broken(Code::kCorrupt, call_, "an event is larger than 8 MiB");
      std::optional<WatchEvent> event = ParseWatchEvent(*line);
      if (!event) {
        return Broken(Code::kCorrupt, call_, "not a watch event: " + Printable(*line, kShownShort));
      }
      if (event->type == WatchEventType::kError) return ApiErrorOfStatus(event->object, call_);
      return event;
    }
    if (lines_.TooLong()) return Broken(Code::kCorrupt, call_, "an event is larger than 8 MiB");
    const Result<size_t> more = stream_->Read(lines_.buffer(), silence_timeout_);
    if (!more.ok()) return ApiErrorOf(more.error().With(call_));
    if (*more == 0) {
      if (lines_.pending() > 0)
        return Broken(Code::kUnavailable, call_, "the stream ended within an event");
      return std::optional<WatchEvent>();
    }
  }
}

}  // namespace parallelrun::kube
