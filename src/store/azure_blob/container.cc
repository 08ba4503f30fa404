#include "store/azure_blob/container.h"

#include <spdlog/fmt/fmt.h>

#include <utility>
#include <variant>

#include "base/escape.h"
#include "base/http/target.h"
#include "store/azure_blob/answers.h"
#include "store/azure_blob/sign.h"
#include "store/objects/http_date.h"
#include "store/objects/object_version.h"

namespace parallelrun::store::azure_blob {
namespace {

// 5,000 blobs with names of 1,024 characters and their metadata.
constexpr size_t kMostBody = size_t{64} * 1024 * 1024;
constexpr Duration kMostSkew = seconds(10 * 60);  // Azure bears 15 minutes

}  // namespace

Result<std::unique_ptr<Container>> Container::Make(ContainerOptions options, Source source) {
  if (options.endpoint.empty()) options.endpoint = source.endpoint;
  const Result<Server> server = ServerOf(options.address, options.endpoint);
  if (!server.ok()) return server.error().With(options.address.Url(""));
  // A key signs each request; all else can be used by whoever reads it on the way.
  if (!server->is_private && !std::holds_alternative<SharedKey>(source.from)) {
    return Error{Code::kInvalid,
                 fmt::format("{}: {} may be sent over https only: the endpoint {} has none",
                             options.address.Url(""), source.told, Printable(server->url, kShown))};
  }
  Result<std::unique_ptr<HttpClient>> made =
      MakeClient({server->url, "", kMostBody, options.first_byte});
  if (!made.ok()) return made.error().With(options.address.Url(""));
  return std::unique_ptr<Container>(
      new Container(std::move(options), *server, std::move(*made), std::move(source)));
}

Container::Container(ContainerOptions options, Server server, std::unique_ptr<HttpClient> client,
                     Source source)
    : options_(std::move(options)),
      server_(std::move(server)),
      client_(std::move(client)),
      credentials_(std::move(source), options_.stop, options_.clock),
      asker_(options_.address.Url(""), options_.limits, options_.clock, options_.stop,
             options_.tally),
      on_stop_(options_.stop, [this] { client_->Cancel(); }) {}

Answered Container::Send(const Question& question, const Proof& proof) {
  HttpCall call;
  const bool list = question.action == Action::kList;
  call.request.method = question.action == Action::kStat ? "HEAD" : "GET";
  call.request.path = server_.path_prefix + (list ? "" : "/" + PercentEncodeSegments(question.key));
  call.request.query = question.query;
  call.request.headers = question.headers;
  Sign(call.request, proof, options_.clock->WallNow() + Duration(skew_.load()));
  Answered answered = SendInto(*client_, call, options_.deadline, question.into);
  if (!answered.refusal.broken.empty()) return answered;
  const HttpResponse& response = *answered.response;
  if (response.status / 100 != 2) {
    ErrorBody& body = answered.refusal.body;
    body = ParseErrorBody(response.body).value_or(ErrorBody{});
    // The answer to a HEAD has no body.
    if (body.code.empty()) body.code = response.Header("x-ms-error-code");
    answered.refusal.request_id = response.Header("x-ms-request-id");
  }
  answered.outcome = OutcomeOf(response.status, answered.refusal.body.code, proof);
  if (answered.refusal.body.code == "AuthenticationFailed" && Skew(response)) {
    answered.outcome = Outcome::kClockSkew;
  }
  return answered;
}

std::optional<Duration> Container::Skew(const HttpResponse& response) const {
  const auto date = ParseHttpDate(std::string(response.Header("Date")));
  if (response.status != kForbidden || !date) return std::nullopt;
  const Duration skew = *date - options_.clock->WallNow();
  const Duration off = skew - Duration(skew_.load());
  return off > kMostSkew || off < -kMostSkew ? std::optional(skew) : std::nullopt;
}

// Whether what was wrong is another now, so that one more request makes sense.
bool Container::Mend(const Answered& answered, const Proof& proof) {
  if (answered.outcome == Outcome::kExpired) return credentials_.Ended(proof);
  if (answered.outcome != Outcome::kClockSkew) return true;
  const std::optional<Duration> skew = Skew(*answered.response);
  if (skew) skew_ = skew->count();
  return true;  // also where another thread has mended it
}

Result<HttpResponse> Container::Ask(const Question& question) {
  Proof proof;
  return asker_.Ask({[&]() -> Status {
                       Result<Proof> got = credentials_.Get();
                       if (!got.ok()) return got.error();
                       proof = std::move(*got);
                       return {};
                     },
                     [&] { return Send(question, proof); },
                     [&](const Answered& answered) { return Mend(answered, proof); },
                     [&](const Answered& answered) {
                       return Explain({question.action, options_.address, question.key,
                                       credentials_.source().told},
                                      server_, proof, answered.refusal);
                     }});
}

Result<HttpResponse> Container::Read(const std::string& key, HttpHeaders headers,
                                     std::span<char> into) {
  return Ask({Action::kRead, key, "", std::move(headers), into});
}

Result<std::optional<Looked>> Container::Look(const std::string& key) {
  const Result<HttpResponse> answer = Ask({Action::kStat, key, "", {}, {}});
  if (!answer.ok() && answer.error().code == Code::kNotFound) return std::optional<Looked>();
  if (!answer.ok()) return answer.error();
  Looked looked;
  looked.is_folder = answer->Header("x-ms-meta-hdi_isfolder") == "true" ||
                     answer->Header("x-ms-resource-type") == "directory";
  if (looked.is_folder) return std::optional(std::move(looked));
  const Result<SizeAndEtag> read = ReadSizeAndEtag(*answer, Place(key));
  if (!read.ok()) return read.error();
  looked.found = {read->size, VersionOf(read->etag, read->size)};
  return std::optional(std::move(looked));
}

Result<std::optional<Found>> Container::Stat(const std::string& key) {
  Result<std::optional<Looked>> looked = Look(key);
  if (!looked.ok()) return looked.error();
  if (!*looked || (*looked)->is_folder) return std::optional<Found>();
  return std::optional(std::move((*looked)->found));
}

std::string Container::Place(const std::string& key) const {
  Address root = options_.address;
  root.prefix.clear();
  return Printable(root.Url(key), kShown);
}

}  // namespace parallelrun::store::azure_blob
