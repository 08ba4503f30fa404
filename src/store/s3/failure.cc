#include "store/s3/failure.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/escape.h"

namespace parallelrun::store::s3 {
namespace {

// The codes that say enough by themselves, once it is said what to do.
struct Known {
  std::string_view code;
  Code error;
  std::string_view words;  // may hold {bucket}, {region}, {credential}, {server}
};
constexpr std::array kKnown{
    Known{"NoSuchBucket", Code::kNotFound,
          "there is no bucket {bucket} at {server}: check its name and the endpoint"},
    Known{"NoSuchKey", Code::kNotFound, "there is no such key in bucket {bucket}"},
    Known{"NoSuchUpload", Code::kNotFound,
          "the upload is not there any more: it was completed, or somebody, or a rule of bucket "
          "{bucket}, has ended it"},
    Known{"NotImplemented", Code::kInvalid, "{server} does not know such a request"},
    Known{
        "InvalidAccessKeyId", Code::kPermission,
        "{server} does not know the access key: check {credential}, and that it is meant for this "
        "endpoint"},
    Known{"SignatureDoesNotMatch", Code::kPermission,
          "the secret key does not belong to the access key: check {credential}"},
    Known{"ExpiredToken", Code::kPermission,
          "the credentials have ended, and no new ones came: renew {credential}"},
    Known{"InvalidToken", Code::kPermission,
          "the session token does not belong to these keys: check {credential}"},
    Known{"RequestTimeTooSkewed", Code::kUnavailable,
          "this machine's clock differs too much from the server's: set it by NTP"},
    Known{"AuthorizationHeaderMalformed", Code::kInvalid,
          "the signature was made for region {region}, which is not the bucket's: give its region "
          "(AWS_REGION)"},
    Known{"PermanentRedirect", Code::kInvalid,
          "the bucket is not in region {region}: give its region (AWS_REGION), or its endpoint"},
    Known{"InvalidObjectState", Code::kInvalid,
          "the object is archived: restore it first (aws s3api restore-object)"},
    Known{"InvalidBucketName", Code::kInvalid, "{bucket} is not a name of a bucket"},
};

std::string Filled(std::string_view words, const Request& request, const Server& server) {
  const auto host = Printable(server.host, kShownLong);
  const auto filled = [&](std::string_view name) -> std::string_view {
    if (name == "bucket") return request.address.bucket;
    if (name == "region") return server.region;
    return name == "server" ? std::string_view(host) : std::string_view(request.credential);
  };
  std::string text;
  while (!words.empty()) {
    const size_t open = std::min(words.find('{'), words.size());
    text += words.substr(0, open);
    words.remove_prefix(open);
    if (words.empty()) break;
    const size_t close = words.find('}');
    text += filled(words.substr(1, close - 1));
    words.remove_prefix(close + 1);
  }
  return text;
}

// The permission that S3 wants for it.
const char* RightFor(Action action) {
  switch (action) {
    case Action::kList: return "s3:ListBucket";
    case Action::kStat:
    case Action::kRead: return "s3:GetObject";
    case Action::kWrite: return "s3:PutObject";
    case Action::kRemove: return "s3:DeleteObject";
    case Action::kEndUpload: return "s3:AbortMultipartUpload";
    case Action::kLookAtUpload: return "s3:ListMultipartUploadParts";
  }
  return "";
}

bool Reads(Action action) { return action == Action::kStat || action == Action::kRead; }

std::string Resource(const Request& request) {
  const std::string bucket = "arn:aws:s3:::" + request.address.bucket;
  return request.action == Action::kList ? bucket
                                         : bucket + "/" + Printable(request.key, kShownLong);
}

// A right that S3 itself names, which need not be its own: what is encrypted by KMS needs one on
// the key, and whoever is told of s3:PutObject grants that in vain.
struct NamedRight {
  std::string action;    // "kms:GenerateDataKey"
  std::string resource;  // empty: it names none
  bool denied = false;   // by a policy, so that to grant it is no cure
};

bool IsAction(std::string_view text) {
  constexpr size_t kMostAction = 100;
  const size_t colon = text.find(':');
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return colon != std::string_view::npos && colon > 0 && colon + 1 < text.size() &&
         text.size() <= kMostAction && std::all_of(text.begin(), text.begin() + colon, plain) &&
         std::all_of(text.begin() + colon + 1, text.end(), plain);
}

// "User: … is not authorized to perform: s3:PutObject on resource: "arn:…" because no …".
std::optional<NamedRight> NamedBy(std::string_view message) {
  constexpr std::string_view kPerform = "is not authorized to perform: ";
  constexpr std::string_view kResource = " on resource: ";
  const size_t at = message.find(kPerform);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = message.substr(at + kPerform.size());
  const std::string_view action = rest.substr(0, rest.find(' '));
  if (!IsAction(action)) return std::nullopt;
  NamedRight right{std::string(action), "", rest.find("explicit deny") != rest.npos};
  rest.remove_prefix(action.size());
  if (!rest.starts_with(kResource)) return right;
  rest.remove_prefix(kResource.size());
  rest = rest.substr(0, rest.find(' '));
  if (rest.size() > 1 && rest.front() == '"' && rest.back() == '"') {
    rest = rest.substr(1, rest.size() - 2);
  }
  right.resource = Printable(rest, kShownLong);
  return right;
}

constexpr const char* kWantsEncryption =
    "; a policy that wants what is written encrypted is met by stores[].encryption";

// Of messages that name no right.
bool SpeaksOfKms(std::string_view message) {
  return message.find("customer master key") != message.npos || message.find("KMS") != message.npos;
}

std::string Denied(const Request& request, const std::string& message) {
  const std::optional<NamedRight> named = NamedBy(message);
  if (named) {
    const std::string where = named->resource.empty() ? Resource(request) : named->resource;
    if (named->denied) {
      return fmt::format("a policy denies {} on {} to {}: have it changed, or use other keys{}",
                         named->action, where, request.credential,
                         request.action == Action::kWrite ? kWantsEncryption : "");
    }
    const bool kms = named->action.starts_with("kms:");
    return fmt::format(
        "{} is missing on {}: grant it to {}{}", named->action, where, request.credential,
        kms ? "; the object is encrypted by that key, whose policy must allow it" : "");
  }
  if (SpeaksOfKms(message)) {
    return fmt::format(
        "{} is missing on the KMS key by which {} is encrypted, or the key is gone: "
        "grant it to {}",
        Reads(request.action) ? "kms:Decrypt" : "kms:GenerateDataKey", Resource(request),
        request.credential);
  }
  std::string words = fmt::format("{} is missing on {}: grant it to {}", RightFor(request.action),
                                  Resource(request), request.credential);
  if (Reads(request.action)) {
    words += "; without s3:ListBucket on the bucket, S3 says so of objects that are not there too";
  }
  if (request.action == Action::kWrite) {
    words += "; a bucket that encrypts by KMS wants kms:GenerateDataKey and kms:Decrypt on its key";
    words += kWantsEncryption;
  }
  return words;
}

struct Meaning {
  Code code;
  std::string words;
};

Meaning MeaningOf(const Request& request, const Server& server, const Refusal& refusal) {
  for (const Known& known : kKnown) {
    if (refusal.body.code == known.code) return {known.error, Filled(known.words, request, server)};
  }
  if (refusal.body.code.starts_with("KMS.")) {
    return {Code::kInvalid,
            "the KMS key by which the object is encrypted cannot be used: enable it, or name "
            "another one (aws kms describe-key)"};
  }
  switch (refusal.status) {
    case kForbidden: return {Code::kPermission, Denied(request, refusal.body.message)};
    case kNotFound:
      return {Code::kNotFound, request.action == Action::kList
                                   ? Filled("there is no such bucket at {server}", request, server)
                                   : "there is no such object"};
    case kConflict: return {Code::kUnavailable, "somebody else writes the same object right now"};
    case kPreconditionFailed:
      return {Code::kStale, Reads(request.action) ? "it was changed since it was opened"
                                                  : "what is there is not what was expected"};
    default: break;
  }
  const bool later = refusal.status >= 500 || refusal.status == 429 || refusal.status == 408;
  if (!later) {
    return {Code::kInvalid,
            Filled("{server} refuses the request; is it a server for S3, and is the "
                   "region right ({region})?",
                   request, server)};
  }
  return {Code::kUnavailable, Filled("{server} is overloaded or broken; ", request, server) +
                                  fmt::format("sent {} times in vain", refusal.repeated + 1)};
}

}  // namespace

Error Explain(const Request& request, const Server& server, const Refusal& refusal) {
  static constexpr std::array kVerbs{"listing",
                                     "looking at",
                                     "reading",
                                     "writing",
                                     "removing",
                                     "ending the upload of",
                                     "looking at the upload of"};
  const std::string url = "s3://" + request.address.bucket + "/" + request.key;
  const std::string place =
      fmt::format("{} {} (region {})", kVerbs[static_cast<size_t>(request.action)],
                  Printable(url, kShownLong), server.region);
  if (refusal.status == 0) {
    return Error{Code::kUnavailable,
                 fmt::format("{}, sent {} times; check the network and the endpoint",
                             refusal.broken, refusal.repeated + 1)}
        .With(place);
  }
  const Meaning meaning = MeaningOf(request, server, refusal);
  return Error{meaning.code, fmt::format("{} ({})", meaning.words, Said(refusal))}.With(place);
}

}  // namespace parallelrun::store::s3
