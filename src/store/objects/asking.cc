#include "store/objects/asking.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <utility>

#include "base/pause.h"
#include "base/random.h"
#include "store/objects/content_range.h"

namespace parallelrun::store {
namespace {

// Whether an answer has few bytes because the object has no more: it has become shorter, and the
// same request would get the same.
bool EndsItsObject(const HttpResponse& response, size_t bytes) {
  if (response.status != 206) return false;
  const auto range = ParseContentRange(response.Header("Content-Range"));
  return range && range->total && *range->total <= range->first + bytes;
}

constexpr size_t kConnections = 64;
constexpr int kToldFrom = 3;  // repetitions, before the log says that it waits
constexpr Duration kToldAgain = seconds(10);

}  // namespace

Result<std::unique_ptr<HttpClient>> MakeClient(ServerOptions options) {
  HttpClientOptions client;
  client.base_url = std::move(options.url);
  client.ca_pem = std::move(options.ca_pem);
  client.user_agent = "parallelrun/" PARALLELRUN_VERSION;
  client.max_connections = kConnections;
  client.max_response_bytes = options.most_body;
  client.first_byte_timeout = options.first_byte;
  return HttpClient::Make(std::move(client));
}

Answered SendInto(HttpClient& client, HttpCall& call, Duration deadline, std::span<char> into) {
  size_t filled = 0;
  if (!into.empty()) {
    call.max_sink_bytes = into.size();
    call.sink = [&](std::string_view piece) -> Status {
      std::memcpy(into.data() + filled, piece.data(), piece.size());
      filled += piece.size();
      return {};
    };
  }
  Answered answered{client.Send(call, deadline), {}, Outcome::kBroken};
  call.sink = nullptr;  // it has ended with what it fills
  if (!answered.response.ok()) {
    const Error& error = answered.response.error();
    answered.refusal.broken = error.message;
    const bool later = error.code == Code::kUnavailable || error.code == Code::kTimeout;
    if (!later) answered.outcome = Outcome::kFinal;
    return answered;
  }
  if (answered.response->status / 100 == 2 && filled < into.size() &&
      !EndsItsObject(*answered.response, filled)) {
    answered.refusal.broken = "the answer has fewer bytes than were asked for";
    return answered;
  }
  answered.refusal.status = answered.response->status;
  return answered;
}

Asker::Asker(std::string where, RetryLimits limits, std::shared_ptr<const Clock> clock,
             std::stop_token stop, std::shared_ptr<AnswerTally> tally)
    : where_(std::move(where)),
      limits_(limits),
      clock_(std::move(clock)),
      stop_(std::move(stop)),
      tally_(tally ? std::move(tally) : std::make_shared<AnswerTally>()) {}

void Asker::TellThatItWaits(Outcome outcome) {
  const int64_t now = clock_->Now().time_since_epoch().count();
  int64_t told = told_.load();
  if (told > now - kToldAgain.count() || !told_.compare_exchange_strong(told, now)) return;
  spdlog::warn("{}: {}; trying again for up to {}", where_,
               outcome == Outcome::kThrottled ? "throttled by the store"
                                              : "the store does not answer as it should",
               HumanDuration(limits_.in_all));
}

Result<HttpResponse> Asker::Ask(const Steps& steps) {
  const Instant begin = clock_->Now();
  const Error stopped{Code::kUnavailable, where_ + ": stopped"};
  std::stop_source ends;
  const auto end = [&ends] { ends.request_stop(); };
  const std::stop_callback all_end(stop_, end);
  const std::stop_callback this_ends(steps.stop, end);
  const std::stop_token stop = ends.get_token();
  Attempts attempts;
  while (true) {
    if (stop.stop_requested()) return stopped;
    const Status proved = steps.prove();
    if (stop.stop_requested()) return stopped;
    if (!proved.ok()) return proved.error().With(where_);
    Answered answered = steps.send();
    if (answered.response.ok()) tally_->Add(answered.outcome == Outcome::kThrottled);
    if (answered.outcome == Outcome::kDone) return std::move(answered.response);
    std::optional<Duration> after;
    if (answered.response.ok()) after = ParseRetryAfter(answered.response->Header("Retry-After"));
    attempts.since_first = clock_->Now() - begin;
    answered.refusal.repeated = attempts.repeated;
    const std::optional<Duration> wait =
        NextWait(answered.outcome, attempts, limits_, after, RandomU64());
    if (stop.stop_requested()) return stopped;
    const bool unsendable = !answered.response.ok() && answered.outcome == Outcome::kFinal;
    if (unsendable) return answered.response.error();
    if (!wait || !steps.mend(answered)) return steps.explain(answered);
    if (attempts.repeated >= kToldFrom) TellThatItWaits(answered.outcome);
    if (!Pause(*wait, stop)) return stopped;
  }
}

}  // namespace parallelrun::store
