#include "store/s3/credential_source.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "base/escape.h"
#include "base/http/client/url.h"
#include "store/s3/address.h"

namespace parallelrun::store::s3 {
namespace {

// What is not our affair: each would start programs or open a browser, or needs a request of its
// own.
constexpr std::array kNotUnderstood{"credential_process", "sso_session", "sso_start_url",
                                    "source_profile", "credential_source"};

Error Half(const std::string& words) { return {Code::kInvalid, "credentials for S3: " + words}; }

std::string Sts(const Surroundings& around, const std::string& region) {
  const std::string own = around.Variable("AWS_ENDPOINT_URL_STS");
  return own.empty() ? fmt::format("https://sts.{}.{}", region, DomainOf(region)) : own;
}

Source FromWebIdentity(const Surroundings& around, const std::string& region,
                       const std::string& file, const std::string& role) {
  std::string session = around.Variable("AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "parallelrun";
  return {WebIdentity{file, role, session, Sts(around, region)},
          fmt::format("the role {} of the web identity in {}", Printable(role, kShown),
                      Printable(file, kShown))};
}

// A token is sent there, so it must not be read on the way: TLS, or no way at all.
bool MayGetToken(const HttpUrl& url) {
  static constexpr std::array kNear{"localhost", "::1", "169.254.170.2", "169.254.170.23",
                                    "fd00:ec2::23"};
  return url.tls || url.host.starts_with("127.") ||
         std::find(kNear.begin(), kNear.end(), url.host) != kNear.end();
}

Result<Source> FromContainer(const Surroundings& around) {
  std::string url = around.Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  const std::string relative = around.Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!relative.empty()) url = "http://169.254.170.2" + relative;
  const Result<HttpUrl> parsed = ParseHttpUrl(url.substr(0, url.find('?')));
  if (!parsed.ok() || !MayGetToken(*parsed)) {
    return Half(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of this machine or of "
        "its container service");
  }
  return Source{ContainerEndpoint{url, around.Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
                                  around.Variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")},
                "the container's endpoint for credentials, " + parsed->HostHeader()};
}

// Nothing: the profile has none.
Result<std::optional<Source>> FromProfile(const Surroundings& around, const std::string& region) {
  const std::string name = Printable(around.ProfileName(), kShown);
  const bool named = !around.Variable("AWS_PROFILE").empty();
  if (named && around.profiles.count(around.ProfileName()) == 0) {
    return Half("AWS_PROFILE is " + name + ", and no file below ~/.aws has a profile of this name");
  }
  const std::string file = around.Setting("web_identity_token_file");
  const std::string role = around.Setting("role_arn");
  if (!file.empty() && !role.empty()) {
    return std::optional(FromWebIdentity(around, region, file, role));
  }
  for (const char* setting : kNotUnderstood) {
    if (around.Setting(setting).empty()) continue;
    return Half(
        fmt::format("profile {} has {}, which is not understood here; run eval \"$(aws configure "
                    "export-credentials --profile {} --format env)\" first",
                    name, setting, name));
  }
  const Keys keys{around.Setting("aws_access_key_id"), around.Setting("aws_secret_access_key"),
                  around.Setting("aws_session_token")};
  if (keys.id.empty() != keys.secret.empty()) {
    return Half("profile " + name +
                " has one of aws_access_key_id and aws_secret_access_key; it needs both");
  }
  if (keys.id.empty()) return std::optional<Source>();
  return std::optional(
      Source{keys, fmt::format("profile {} below ~/.aws ({})", name, ShownId(keys.id))});
}

}  // namespace

std::string ShownId(const std::string& id) {
  constexpr size_t kEnds = 4;
  if (id.size() < 3 * kEnds) return "…";  // not one of AWS's: perhaps a password in its place
  return Printable(id.substr(0, kEnds) + "…" + id.substr(id.size() - kEnds), kShown);
}

Result<Source> SourceOf(const Surroundings& around, const std::string& region) {
  const Keys keys{around.Variable("AWS_ACCESS_KEY_ID"), around.Variable("AWS_SECRET_ACCESS_KEY"),
                  around.Variable("AWS_SESSION_TOKEN")};
  if (keys.id.empty() != keys.secret.empty()) {
    return Half("one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; both are needed");
  }
  if (!keys.id.empty()) {
    return Source{keys, fmt::format("AWS_ACCESS_KEY_ID of the environment ({})", ShownId(keys.id))};
  }
  const std::string file = around.Variable("AWS_WEB_IDENTITY_TOKEN_FILE");
  const std::string role = around.Variable("AWS_ROLE_ARN");
  if (!file.empty() && role.empty()) {
    return Half("AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not; both are needed");
  }
  if (!file.empty()) return FromWebIdentity(around, region, file, role);
  if (!around.Variable("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty() ||
      !around.Variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty()) {
    return FromContainer(around);
  }
  Result<std::optional<Source>> profile = FromProfile(around, region);
  if (!profile.ok()) return profile.error();
  if (*profile) return std::move(**profile);
  if (around.Variable("AWS_EC2_METADATA_DISABLED") == "true") {
    return Error{Code::kPermission,
                 "no credentials for S3: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write "
                 "a profile with aws configure"};
  }
  std::string endpoint = around.Variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (endpoint.empty()) endpoint = "http://169.254.169.254";
  return Source{InstanceMetadata{endpoint}, "the role of this instance"};
}

Source SourceOf(const KeyFiles& files) { return {files, Printable(files.of, kShown)}; }

}  // namespace parallelrun::store::s3
