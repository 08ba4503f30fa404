#include "store/s3/bucket.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/escape.h"
#include "base/http/target.h"
#include "store/objects/http_date.h"
#include "store/objects/object_version.h"
#include "store/s3/answers.h"
#include "store/s3/look.h"
#include "store/s3/outcome.h"
#include "store/s3/sign.h"

namespace parallelrun::store::s3 {
namespace {

constexpr size_t kMostBody = size_t{16} * 1024 * 1024;  // 1,000 keys of 1,024 bytes, encoded: 3 MiB
constexpr Duration kShortestLife = seconds(1);          // of a URL: S3 takes no shorter one
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
      asker_(options_.address.Url(""), options_.limits, options_.clock, options_.stop,
             options_.tally),
      on_stop_(options_.stop, [this] {
        const std::lock_guard lock(mutex_);
        if (current_) current_->client->Cancel();
        if (first_) first_->client->Cancel();
      }) {}

Result<std::shared_ptr<Bucket::Target>> Bucket::MakeTarget(const BucketOptions& options,
                                                           const std::string& region) {
  Result<Server> server = ServerOf(options.address.bucket, region, options.endpoint, options.style);
  if (!server.ok()) return server.error();
  Result<std::unique_ptr<HttpClient>> made =
      MakeClient({server->url, options.ca_pem, kMostBody, options.first_byte});
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
Answered Bucket::Try(Question& question, const Target& target, const Keys& keys) {
  if (question.action != Action::kStat) return Send(question, question.method, target, keys);
  Answered answered = Send(question, "HEAD", target, keys);
  const int status = answered.refusal.status;
  if (status != kBadRequest && status != kForbidden) return answered;
  Question aloud = question;
  aloud.headers = {{"Range", "bytes=0-0"}};
  Answered why = Send(aloud, "GET", target, keys);
  return why.refusal.body.code.empty() ? std::move(answered) : std::move(why);
}

Answered Bucket::Send(Question& question, const std::string& method, const Target& target,
                      const Keys& keys) {
  HttpCall call;
  call.request.method = method;
  const bool list = question.action == Action::kList;
  call.request.path =
      target.server.path_prefix + "/" + (list ? "" : PercentEncodeSegments(question.key));
  call.request.query = question.query;
  call.request.headers = question.headers;
  call.request.body = std::move(question.body);
  Sign(call.request, target.server.host, keys, {target.server.region},
       options_.clock->WallNow() + Duration(skew_.load()));
  Answered answered = SendInto(*target.client, call, options_.deadline, question.into);
  question.body = std::move(call.request.body);
  if (!answered.refusal.broken.empty()) return answered;
  const HttpResponse& response = *answered.response;
  answered.refusal.body = BodyOf(response, !question.into.empty());
  answered.refusal.request_id = response.Header("x-amz-request-id");
  const std::string& region = answered.refusal.body.region;
  const bool other_region = IsRegion(region) && region != target.server.region;
  answered.outcome = OutcomeOf(response.status, answered.refusal.body.code, other_region);
  if (response.status == kConflict && question.repeats_conflicts) {
    answered.outcome = Outcome::kServerFault;
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

Result<HttpResponse> Bucket::Ask(Question question) {
  Keys keys;
  std::shared_ptr<Target> target;
  return asker_.Ask({[&]() -> Status {
                       Result<Keys> got = credentials_->Get();
                       if (!got.ok()) return got.error();
                       keys = std::move(*got);
                       return {};
                     },
                     [&] {
                       target = Current();
                       return Try(question, *target, keys);
                     },
                     [&](const Answered& answered) { return Mend(answered, *target, keys); },
                     [&](const Answered& answered) {
                       return Explain(
                           {question.action, options_.address, question.key, credentials_->told()},
                           target->server, answered.refusal);
                     },
                     question.stop});
}

Result<SignedUrl> Bucket::SignUrl(const std::string& key, std::string_view etag, Duration life) {
  HttpRequest request;
  if (etag != kNoObject) request.headers = {{"If-Match", fmt::format("\"{}\"", etag)}};
  return SignRequest(key, std::move(request), life);
}

Result<SignedUrl> Bucket::SignRequest(const std::string& key, HttpRequest request, Duration life) {
  const Result<Keys> keys = credentials_->Get();
  if (!keys.ok()) return keys.error().With(Place(key));
  if (const auto left = credentials_->Left()) life = std::min(life, *left);
  life = std::max<Duration>(life, kShortestLife);
  const std::shared_ptr<Target> target = Current();
  request.path = target->server.path_prefix + "/" + PercentEncodeSegments(key);
  Presign(request, target->server.host, *keys, {target->server.region},
          options_.clock->WallNow() + Duration(skew_.load()), life);
  return SignedUrl{target->server.url + request.path + "?" + request.query, life};
}

Result<HttpResponse> Bucket::Read(const std::string& key, HttpHeaders headers,
                                  std::span<char> into) {
  Question question;
  question.action = Action::kRead;
  question.key = key;
  question.headers = std::move(headers);
  question.into = into;
  return Ask(std::move(question));
}

Result<std::optional<Found>> Bucket::Stat(const std::string& key) {
  Result<std::optional<Looked>> looked = LookAt(*this, key);
  if (!looked.ok()) return looked.error();
  if (!*looked) return std::optional<Found>();
  const Found& found = (*looked)->found;
  return std::optional(Found{found.size, VersionOf(found.version.bytes(), found.size)});
}

std::string Bucket::Place(const std::string& key) const {
  return fmt::format("s3://{}/{}", options_.address.bucket, Printable(key, kShown));
}

}  // namespace parallelrun::store::s3
