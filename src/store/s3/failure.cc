#include "store/s3/failure.h"

#include <spdlog/fmt/fmt.h>

#include <array>
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
  }
  return "";
}

bool Reads(Action action) { return action == Action::kStat || action == Action::kRead; }

std::string Resource(const Request& request) {
  const std::string bucket = "arn:aws:s3:::" + request.address.bucket;
  return request.action == Action::kList ? bucket
                                         : bucket + "/" + Printable(request.key, kShownLong);
}

std::string Denied(const Request& request) {
  std::string words = fmt::format("{} is missing on {}: grant it to {}", RightFor(request.action),
                                  Resource(request), request.credential);
  if (Reads(request.action)) {
    words += "; without s3:ListBucket on the bucket, S3 says so of objects that are not there too";
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
  switch (refusal.status) {
    case kForbidden: return {Code::kPermission, Denied(request)};
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
  static constexpr std::array kVerbs{"listing", "looking at", "reading",
                                     "writing", "removing",   "ending the upload of"};
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
