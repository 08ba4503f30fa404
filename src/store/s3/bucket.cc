#include "store/s3/bucket.h"

#include <spdlog/spdlog.h>

#include <cstring>
#include <utility>

#include "base/random.h"
#include "store/s3/pause.h"
#include "store/s3/sign.h"
#include "store/s3/timestamps.h"

namespace parallelrun::s3 {
namespace {

constexpr size_t kMostBody = size_t{16} * 1024 * 1024;  // 1,000 keys of 1,024 bytes, encoded: 3 MiB
constexpr size_t kConnections = 32;
constexpr int kToldFrom = 3;  // repetitions, before the log says that it waits
constexpr Duration kToldAgain = seconds(10);
constexpr int kBadRequest = 400;
constexpr int kForbidden = 403;
constexpr const char* kRegionHeader = "x-amz-bucket-region";

ErrorBody BodyOf(const HttpResponse& response, bool into_span) {
  ErrorBody body;
  // An object may well be an XML document that looks like an error.
  const bool is_object = into_span && response.status / 100 == 2;
  if (!is_object) body = ParseErrorBody(response.body).value_or(ErrorBody{});
  if (body.region.empty()) body.region = response.Header(kRegionHeader);
  return body;
}

}  // namespace

Result<std::unique_ptr<Bucket>> Bucket::Make(BucketOptions options,
                                             std::unique_ptr<Credentials> credentials) {
  Result<std::shared_ptr<Target>> target = MakeTarget(options, options.region);
  if (!target.ok()) return target.error().With(options.address.Url(""));
  std::unique_ptr<Bucket> bucket(new Bucket(std::move(options), std::move(credentials)));
  const std::lock_guard lock(bucket->mutex_);
  bucket->current_ = std::move(*target);
  if (bucket->options_.stop.stop_requested()) bucket->current_->client->Cancel();
  return bucket;
}

Bucket::Bucket(BucketOptions options, std::unique_ptr<Credentials> credentials)
    : options_(std::move(options)),
      credentials_(std::move(credentials)),
      on_stop_(options_.stop, [this] {
        const std::lock_guard lock(mutex_);
        if (current_) current_->client->Cancel();
        if (first_) first_->client->Cancel();
      }) {}

Result<std::shared_ptr<Bucket::Target>> Bucket::MakeTarget(const BucketOptions& options,
                                                           const std::string& region) {
  Result<Server> server = ServerOf(options.address.bucket, region, options.endpoint, options.style);
  if (!server.ok()) return server.error();
  HttpClientOptions client;
  client.base_url = server->url;
  client.ca_pem = options.ca_pem;
  client.user_agent = "parallelrun/" PARALLELRUN_VERSION;
  client.max_connections = kConnections;
  client.max_response_bytes = kMostBody;
  client.first_byte_timeout = options.first_byte;
  Result<std::unique_ptr<HttpClient>> made = HttpClient::Make(std::move(client));
  if (!made.ok()) return made.error();
  auto target = std::make_shared<Target>();
  target->server = std::move(*server);
  target->client = std::move(*made);
  return target;
}

std::shared_ptr<Bucket::Target> Bucket::Current() {
  const std::lock_guard lock(mutex_);
  return current_;
}

// A refused HEAD has no body that says why; the same as a GET has one.
Bucket::Answered Bucket::Try(const Question& question, const Target& target, const Keys& keys) {
  if (question.action != Action::kStat) return Send(question, "GET", target, keys);
  Answered answered = Send(question, "HEAD", target, keys);
  const int status = answered.refusal.status;
  if (status != kBadRequest && status != kForbidden) return answered;
  Question aloud = question;
  aloud.headers = {{"Range", "bytes=0-0"}};
  Answered why = Send(aloud, "GET", target, keys);
  return why.refusal.body.code.empty() ? std::move(answered) : std::move(why);
}

Bucket::Answered Bucket::Send(const Question& question, const char* method, const Target& target,
                              const Keys& keys) {
  HttpCall call;
  call.request.method = method;
  const bool list = question.action == Action::kList;
  call.request.path = target.server.path_prefix + "/" + (list ? "" : EncodedKey(question.key));
  call.request.query = question.query;
  call.request.headers = question.headers;
  Sign(call.request, target.server.host, keys, {target.server.region},
       options_.clock->WallNow() + Duration(skew_.load()));
  size_t filled = 0;
  const bool into_span = !question.into.empty();
  if (into_span) {
    call.max_sink_bytes = question.into.size();
    call.sink = [&](std::string_view piece) -> Status {
      std::memcpy(question.into.data() + filled, piece.data(), piece.size());
      filled += piece.size();
      return {};
    };
  }
  Answered answered{target.client->Send(call, options_.deadline), {}, Outcome::kBroken};
  if (!answered.response.ok()) {
    const Error& error = answered.response.error();
    answered.refusal.broken = error.message;
    const bool later = error.code == Code::kUnavailable || error.code == Code::kTimeout;
    if (!later) answered.outcome = Outcome::kFinal;
    return answered;
  }
  const HttpResponse& response = *answered.response;
  answered.refusal.status = response.status;
  answered.refusal.body = BodyOf(response, into_span);
  answered.refusal.request_id = response.Header("x-amz-request-id");
  const std::string& region = answered.refusal.body.region;
  const bool other_region = IsRegion(region) && region != target.server.region;
  answered.outcome = OutcomeOf(response.status, answered.refusal.body.code, other_region);
  if (answered.outcome == Outcome::kDone && filled < question.into.size()) {
    answered.outcome = Outcome::kBroken;
    answered.refusal = {};
    answered.refusal.broken = "the answer has fewer bytes than were asked for";
  }
  return answered;
}

// Whether what was wrong is another now, so that one more request makes sense.
bool Bucket::Mend(const Answered& answered, const Target& target, const Keys& keys) {
  switch (answered.outcome) {
    case Outcome::kClockSkew: {
      const auto date = ParseHttpDate(std::string(answered.response->Header("Date")));
      if (!date) return false;
      skew_ = (*date - options_.clock->WallNow()).count();
      return true;
    }
    case Outcome::kExpired: return credentials_->Ended(keys), true;
    case Outcome::kWrongRegion: return Move(target.server.region, answered.refusal.body.region);
    default: return true;
  }
}

// True when requests go elsewhere now than to region `from`. That is so once at most in the life of
// a bucket: servers that send us in circles are not followed.
bool Bucket::Move(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  if (current_->server.region != from) return true;  // another thread did it
  if (first_) return false;
  Result<std::shared_ptr<Target>> target = MakeTarget(options_, to);
  if (!target.ok()) return false;
  spdlog::info("{} is in region {}, not in {}; AWS_REGION saves the detour",
               options_.address.Url(""), to, from);
  first_ = std::exchange(current_, std::move(*target));
  if (options_.stop.stop_requested()) current_->client->Cancel();
  return true;
}

void Bucket::TellThatItWaits(const Answered& answered) {
  const int64_t now = options_.clock->Now().time_since_epoch().count();
  int64_t told = told_.load();
  if (told > now - kToldAgain.count() || !told_.compare_exchange_strong(told, now)) return;
  spdlog::warn("{}: {}; trying again for up to {}", options_.address.Url(""),
               answered.outcome == Outcome::kThrottled ? "throttled by the store"
                                                       : "the store does not answer as it should",
               HumanDuration(options_.limits.in_all));
}

Result<HttpResponse> Bucket::Ask(const Question& question) {
  const Instant begin = options_.clock->Now();
  Attempts attempts;
  while (true) {
    const Error stopped{Code::kUnavailable, options_.address.Url("") + ": stopped"};
    if (options_.stop.stop_requested()) return stopped;
    const Result<Keys> keys = credentials_->Get();
    if (options_.stop.stop_requested()) return stopped;
    if (!keys.ok()) return keys.error().With(options_.address.Url(""));
    const std::shared_ptr<Target> target = Current();
    Answered answered = Try(question, *target, *keys);
    if (answered.outcome == Outcome::kDone) return std::move(answered.response);
    std::optional<Duration> after;
    if (answered.response.ok()) after = ParseRetryAfter(answered.response->Header("Retry-After"));
    attempts.since_first = options_.clock->Now() - begin;
    answered.refusal.repeated = attempts.repeated;
    const std::optional<Duration> wait =
        NextWait(answered.outcome, attempts, options_.limits, after, RandomU64());
    if (options_.stop.stop_requested()) return stopped;
    const bool unsendable = !answered.response.ok() && answered.outcome == Outcome::kFinal;
    if (unsendable) return answered.response.error();
    if (!wait || !Mend(answered, *target, *keys)) {
      return Explain({question.action, options_.address, question.key, credentials_->told()},
                     target->server, answered.refusal);
    }
    if (attempts.repeated >= kToldFrom) TellThatItWaits(answered);
    if (!Pause(*wait, options_.stop)) return stopped;
  }
}

}  // namespace parallelrun::s3
