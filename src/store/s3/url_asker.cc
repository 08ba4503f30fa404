#include "store/s3/url_asker.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/http/target.h"
#include "store/objects/refusal.h"
#include "store/s3/answers.h"
#include "store/s3/outcome.h"
#include "store/s3/surroundings.h"

namespace parallelrun::store::s3 {
namespace {

constexpr size_t kMostInUrlBody = size_t{1} << 20;  // errors; all else fills what the reader has
constexpr Duration kUrlDeadline = seconds(300);     // of one request

// A URL in its parts: "https://host", "/bucket/key", "X-Amz-…".
struct UrlParts {
  std::string server;
  std::string path;
  std::string query;
};

// Whatever the URL is, nothing of its query is in the server's part, which messages show.
UrlParts PartsOf(const std::string& url) {
  const size_t scheme = url.find("://");
  if (scheme == std::string::npos) return {};
  const size_t path = std::min(url.find_first_of("/?", scheme + 3), url.size());
  const size_t query = std::min(url.find('?', path), url.size());
  return {url.substr(0, path), url.substr(path, query - path),
          url.substr(std::min(query + 1, url.size()))};
}

// For messages: the region stands in the signature's scope, "AKIA…/20150830/eu-west-1/s3/…".
std::string RegionOf(const UrlParts& parts) {
  std::string scope = QueryParameter(parts.query, "X-Amz-Credential").value_or("");
  for (int i = 0; i < 2; ++i) scope.erase(0, std::min(scope.find('/'), scope.size() - 1) + 1);
  const std::string region = scope.substr(0, scope.find('/'));
  return IsRegion(region) ? region : "";
}

// Whether it counts no more, as S3 says of one whose time is over, or whose keys have ended or were
// changed for others. Anything else is a right that is missing.
bool HasEnded(const Answered& answered) {
  const ErrorBody& body = answered.refusal.body;
  if (answered.outcome == Outcome::kExpired || answered.outcome == Outcome::kClockSkew) return true;
  if (answered.refusal.status != kForbidden) return false;
  return body.code == "InvalidAccessKeyId" || body.code == "InvalidToken" ||
         (body.code == "AccessDenied" && body.message.find("expired") != std::string::npos);
}

// A server may repeat what it was asked, and a message goes into logs and reports.
void Redact(ErrorBody& body) {
  for (std::string* text : {&body.code, &body.message, &body.region}) {
    if (text->find("X-Amz-") != std::string::npos) *text = "";
  }
}

}  // namespace

Result<UrlStoreOptions> UrlOptionsOf(const Wished& wished, std::stop_token stop) {
  const Result<Surroundings> around = ReadSurroundings();
  if (!around.ok()) return around.error().With(wished.url);
  UrlStoreOptions options;
  options.url = wished.url;
  options.stop = std::move(stop);
  options.tally = wished.tally;
  if (const std::string file = around->Variable("AWS_CA_BUNDLE"); !file.empty()) {
    Result<std::string> pem = ReadTrimmed(file);
    if (!pem.ok()) return pem.error().With("AWS_CA_BUNDLE");
    options.ca_pem = std::move(*pem);
  }
  return options;
}

UrlAsker::UrlAsker(const UrlStoreOptions& options, Address address,
                   std::shared_ptr<const Clock> clock)
    : options_(options),
      address_(std::move(address)),
      asker_(address_.Url(""), options_.limits, std::move(clock), options_.stop, options_.tally),
      on_stop_(options_.stop, [this] {
        const std::lock_guard lock(mutex_);
        for (auto& [server, client] : clients_) client->Cancel();
      }) {}

Result<HttpResponse> UrlAsker::Ask(const UrlQuestion& question) {
  std::string url;
  UrlParts parts;
  std::shared_ptr<HttpClient> client;
  const auto take = [&]() -> Status {
    Result<std::string> counts = question.url();
    if (!counts.ok()) return counts.error();
    url = std::move(*counts);
    parts = PartsOf(url);
    Result<std::shared_ptr<HttpClient>> of = ClientOf(parts.server);
    if (!of.ok()) return of.error();
    client = std::move(*of);
    return {};
  };
  const auto send = [&] {
    HttpCall call;
    call.request.method = question.method;
    call.request.path = parts.path;
    call.request.query = parts.query;
    call.request.headers = question.headers;
    call.file = question.file;
    Answered answered = SendInto(*client, call, kUrlDeadline, question.into);
    if (!answered.refusal.broken.empty()) return answered;
    const HttpResponse& response = *answered.response;
    if (response.status / 100 != 2) {
      answered.refusal.body = ParseErrorBody(response.body).value_or(ErrorBody{});
      Redact(answered.refusal.body);
    }
    answered.refusal.request_id = response.Header("x-amz-request-id");
    answered.outcome = OutcomeOf(response.status, answered.refusal.body.code, false);
    return answered;
  };
  const auto mend = [](const Answered& answered) { return !HasEnded(answered); };
  const auto explain = [&](const Answered& answered) -> Error {
    if (HasEnded(answered)) return question.ended(url, Said(answered.refusal));
    Server server;
    server.host = parts.server.substr(std::min(parts.server.find("://"), parts.server.size()));
    server.host.erase(0, std::min<size_t>(3, server.host.size()));
    server.region = RegionOf(parts);
    return Explain({question.action, address_, question.key, "the keys of the coordinator"}, server,
                   answered.refusal);
  };
  return asker_.Ask({take, send, mend, explain, question.stop});
}

Result<std::shared_ptr<HttpClient>> UrlAsker::ClientOf(const std::string& server) {
  const std::lock_guard lock(mutex_);
  if (const auto known = clients_.find(server); known != clients_.end()) return known->second;
  Result<std::unique_ptr<HttpClient>> made =
      MakeClient({server, options_.ca_pem, kMostInUrlBody, options_.first_byte});
  if (!made.ok()) return made.error();
  std::shared_ptr<HttpClient> client = std::move(*made);
  if (options_.stop.stop_requested()) client->Cancel();
  return clients_.emplace(server, std::move(client)).first->second;
}

}  // namespace parallelrun::store::s3
