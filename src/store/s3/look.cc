#include "store/s3/look.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "base/escape.h"
#include "store/objects/object_version.h"
#include "store/s3/answers.h"

namespace parallelrun::store::s3 {
Result<std::optional<Looked>> LookAt(Bucket& bucket, const std::string& key) {
  Question question;
  question.action = Action::kStat;
  question.key = key;
  Result<HttpResponse> answer = bucket.Ask(std::move(question));
  if (!answer.ok() && answer.error().code == Code::kNotFound) return std::optional<Looked>();
  if (!answer.ok()) return answer.error();
  const std::string_view length = answer->Header("Content-Length");
  Looked looked;
  const char* end = length.data() + length.size();
  const auto [stopped, error] = std::from_chars(length.data(), end, looked.found.size);
  const std::string etag = PlainEtag(answer->Header("ETag"));
  const bool usable = !etag.empty() && etag.size() <= kMostEtag;
  if (error != std::errc() || stopped != end || !usable) {
    return Error{
        Code::kInvalid,
        fmt::format("s3://{}/{}: the server tells no size or no ETag, without which nobody "
                    "knows whether an object was changed. A file that was put into the server's "
                    "folder has none: put it there through S3 (aws s3 cp)",
                    bucket.address().bucket, Printable(key, kShown))};
  }
  looked.found.version = Version(etag);
  looked.headers = std::move(answer->headers);
  return std::optional(std::move(looked));
}

}  // namespace parallelrun::store::s3
