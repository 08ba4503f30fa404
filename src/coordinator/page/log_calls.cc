#include "coordinator/page/log_calls.h"

#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "base/escape.h"
#include "base/http/target.h"
#include "coordinator/access.h"

namespace parallelrun::coordinator {
namespace {

constexpr size_t kMostPath = 1000;

// Whether a path stays below the log folder by its words alone; links in it are the folder's care.
bool IsLogPath(const std::string& path) {
  return !path.empty() && path.size() <= kMostPath && PathSegments("/" + path).ok();
}

HttpResponse PartResponse(const std::string& path, const Result<LogPart>& part) {
  const std::string shown = Printable(path, kShownShort);
  if (!part.ok() && part.error().code == Code::kNotFound) {
    return ErrorResponse(404, "NotFound", "there is no log " + shown + " (yet)");
  }
  if (!part.ok()) {
    return ErrorResponse(503, "Unavailable", shown + ": " + part.error().message);
  }
  HttpResponse response = TextResponse(200, part->bytes);
  response.headers = {{"Log-From", std::to_string(part->from)},
                      {"Log-Size", std::to_string(part->size)},
                      {"Cache-Control", "no-store"},
                      {"X-Content-Type-Options", "nosniff"}};
  return response;
}

}  // namespace

void LogCalls::Handle(const std::shared_ptr<HttpExchange>& exchange) {
  const std::string& query = exchange->request().query;
  const std::optional<std::string> path = QueryParameter(query, "path");
  const std::optional<std::string> from_text = QueryParameter(query, "from");
  std::optional<uint64_t> from;
  if (from_text) {
    const char* const end = from_text->data() + from_text->size();
    uint64_t number = 0;
    const auto [rest, error] = std::from_chars(from_text->data(), end, number);
    if (error != std::errc() || rest != end) {
      return exchange->Respond(ErrorResponse(400, "Invalid", "from is a number of bytes"));
    }
    from = number;
  }
  if (!path || !IsLogPath(*path)) {
    return exchange->Respond(
        ErrorResponse(400, "Invalid", "path is that of a log, below the log folder"));
  }
  const uint64_t number = ++last_;
  asked_[number] = exchange;
  const bool asked = reader_.Ask(*path, from, [this, number, path = *path](Result<LogPart> part) {
    loop_.Post([this, number, path, part = std::move(part)] {
      const auto found = asked_.find(number);
      found->second->Respond(PartResponse(path, part));
      asked_.erase(found);
    });
  });
  if (asked) return;
  asked_.erase(number);
  exchange->Respond(ErrorResponse(503, "Unavailable", "too many logs are being read: try again"));
}

}  // namespace parallelrun::coordinator
