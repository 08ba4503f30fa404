#include "store/s3/credential_fetch.h"

#include <spdlog/fmt/fmt.h>

#include <functional>
#include <memory>
#include <utility>

#include "base/escape.h"
#include "base/http/client.h"
#include "base/http/target.h"
#include "base/pause.h"
#include "base/random.h"
#include "store/objects/retry.h"
#include "store/s3/outcome.h"

namespace parallelrun::store::s3 {
namespace {

constexpr size_t kMostAnswer = 256 * 1024;
constexpr RetryLimits kLimits{3, milliseconds(100), seconds(2), seconds(15)};

// One of those who give credentials.
class Giver {
 public:
  static Result<std::unique_ptr<Giver>> Make(const std::string& base_url,
                                             const FetchOptions& options) {
    HttpClientOptions client;
    client.base_url = base_url;
    client.ca_pem = options.ca_pem;
    client.repeat_posts = true;  // to be given keys twice does no harm
    client.max_response_bytes = kMostAnswer;
    client.connect_timeout = options.deadline;
    client.first_byte_timeout = options.deadline;
    Result<std::unique_ptr<HttpClient>> made = HttpClient::Make(std::move(client));
    if (!made.ok()) return made.error();
    return std::unique_ptr<Giver>(new Giver(std::move(*made), options));
  }

  // Any answer that is not worth another try.
  Result<HttpResponse> Ask(const HttpRequest& request) {
    Attempts attempts;
    for (const auto begin = std::chrono::steady_clock::now();;) {
      Result<HttpResponse> response = client_->Send(request, options_.deadline);
      const Outcome outcome =
          response.ok() ? OutcomeOf(response->status, "", false) : Outcome::kBroken;
      attempts.since_first =
          std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
      const std::optional<Duration> wait =
          NextWait(outcome, attempts, kLimits, std::nullopt, RandomU64());
      if (!wait || !Pause(*wait, options_.stop)) return response;
    }
  }

 private:
  Giver(std::unique_ptr<HttpClient> client, FetchOptions options)
      : client_(std::move(client)),
        options_(std::move(options)),
        on_stop_(options_.stop, [this] { client_->Cancel(); }) {}

  const std::unique_ptr<HttpClient> client_;
  const FetchOptions options_;
  const std::stop_callback<std::function<void()>> on_stop_;
};

Error Refused(const HttpResponse& response, const std::string& why) {
  const bool later = OutcomeOf(response.status, "", false) != Outcome::kFinal;
  return {later ? Code::kUnavailable : Code::kPermission,
          fmt::format("answered {}{}", response.status, why)};
}

Result<SessionKeys> Fetch(const Keys& keys, const FetchOptions&) {
  return SessionKeys{keys, std::nullopt};
}

Result<SessionKeys> Fetch(const KeyFiles& files, const FetchOptions&) {
  SessionKeys session;
  for (const auto& [name, part] : {std::pair{"accessKeyId", &session.keys.id},
                                   std::pair{"secretAccessKey", &session.keys.secret},
                                   std::pair{"sessionToken", &session.keys.token}}) {
    Result<std::string> read = ReadTrimmed(files.folder + "/" + name);
    const bool needed = part != &session.keys.token;
    if (!read.ok() && (needed || read.error().code != Code::kNotFound)) return read.error();
    if (!read.ok()) continue;
    if (read->empty()) {
      return Error{Code::kPermission, fmt::format("its {} is empty", name)};
    }
    *part = std::move(*read);
  }
  return session;
}

Result<SessionKeys> Fetch(const WebIdentity& identity, const FetchOptions& options) {
  const Result<std::string> token = ReadTrimmed(identity.token_file);
  if (!token.ok()) return token.error();
  Result<std::unique_ptr<Giver>> sts = Giver::Make(identity.endpoint, options);
  if (!sts.ok()) return sts.error();
  HttpRequest request;
  request.method = "POST";
  request.path = "/";
  request.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  request.body = fmt::format(
      "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}"
      "&WebIdentityToken={}",
      PercentEncode(identity.role), PercentEncode(identity.session_name), PercentEncode(*token));
  const Result<HttpResponse> response = (*sts)->Ask(request);
  if (!response.ok()) return response.error();
  if (response->status == 200) return ParseAssumedRole(response->body);
  const ErrorBody said = ParseErrorBody(response->body).value_or(ErrorBody{});
  return Refused(*response,
                 fmt::format(" {}, {}; may this service account assume the role?",
                             Printable(said.code, kShown), Printable(said.message, kShown)))
      .With(Printable(identity.endpoint, kShown));
}

Result<SessionKeys> Fetch(const ContainerEndpoint& container, const FetchOptions& options) {
  std::string token = container.token;
  if (!container.token_file.empty()) {
    Result<std::string> read = ReadTrimmed(container.token_file);
    if (!read.ok()) return read.error();
    token = std::move(*read);
  }
  const size_t path =
      std::min(container.url.find('/', container.url.find("://") + 3), container.url.size());
  Result<std::unique_ptr<Giver>> giver = Giver::Make(container.url.substr(0, path), options);
  if (!giver.ok()) return giver.error();
  const std::string target = container.url.substr(path);
  const size_t query = std::min(target.find('?'), target.size());
  HttpRequest request;
  request.path = query == 0 ? "/" : target.substr(0, query);
  if (query < target.size()) request.query = target.substr(query + 1);
  if (!token.empty()) request.headers = {{"Authorization", token}};
  const Result<HttpResponse> response = (*giver)->Ask(request);
  if (!response.ok()) return response.error();
  if (response->status != 200) return Refused(*response, "");
  return ParseKeysJson(response->body);
}

Result<SessionKeys> Fetch(const InstanceMetadata& metadata, const FetchOptions& options) {
  static constexpr const char* kRoles = "/latest/meta-data/iam/security-credentials/";
  FetchOptions near = options;  // it is on the same machine, or there is none: nobody waits long
  near.deadline = std::min<Duration>(options.deadline, seconds(1));
  Result<std::unique_ptr<Giver>> giver = Giver::Make(metadata.endpoint, near);
  if (!giver.ok()) return giver.error();
  // Version 2 only: version 1 gives the keys to whoever can make this machine fetch a URL.
  HttpRequest session;
  session.method = "PUT";
  session.path = "/latest/api/token";
  session.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "300"}};
  const Result<HttpResponse> token = (*giver)->Ask(session);
  if (!token.ok()) {
    return Error{Code::kPermission,
                 "its metadata service does not answer; a container on EC2 needs a web identity, "
                 "or a hop limit of 2; " +
                     token.error().message};
  }
  if (token->status != 200) return Refused(*token, "");
  HttpRequest request;
  request.headers = {{"X-aws-ec2-metadata-token", token->body}};
  request.path = kRoles;
  const Result<HttpResponse> role = (*giver)->Ask(request);
  if (!role.ok()) return role.error();
  if (role->status == 404) return Refused(*role, ": this instance has no role");
  if (role->status != 200) return Refused(*role, "");
  request.path = kRoles + PercentEncode(role->body.substr(0, role->body.find('\n')));
  const Result<HttpResponse> keys = (*giver)->Ask(request);
  if (!keys.ok()) return keys.error();
  if (keys->status != 200) return Refused(*keys, "");
  return ParseKeysJson(keys->body);
}

}  // namespace

Result<SessionKeys> FetchKeys(const Source& source, const FetchOptions& options) {
  Result<SessionKeys> keys =
      std::visit([&](const auto& from) { return Fetch(from, options); }, source.from);
  if (keys.ok()) return keys;
  // Who has set up nothing has not heard of that role, which is asked last.
  if (std::holds_alternative<InstanceMetadata>(source.from) &&
      keys.error().code == Code::kPermission) {
    return Error{Code::kPermission,
                 fmt::format("no credentials for S3 were found: set AWS_ACCESS_KEY_ID and "
                             "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE ({}: {})",
                             source.told, keys.error().message)};
  }
  return keys.error().With("credentials for S3: " + source.told);
}

}  // namespace parallelrun::store::s3
