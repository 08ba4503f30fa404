#include "store/s3/look.h"

#include <utility>

#include "store/objects/object_version.h"

namespace parallelrun::store::s3 {
Result<std::optional<Looked>> LookAt(Bucket& bucket, const std::string& key) {
  Question question;
  question.action = Action::kStat;
  question.key = key;
  Result<HttpResponse> answer = bucket.Ask(std::move(question));
  if (!answer.ok() && answer.error().code == Code::kNotFound) return std::optional<Looked>();
  if (!answer.ok()) return answer.error();
  const Result<SizeAndEtag> read = ReadSizeAndEtag(*answer, bucket.Place(key));
  if (!read.ok()) {
    return Error{read.error().code, read.error().message +
                                        ". A file that was put into the server's folder has none: "
                                        "put it there through S3 (aws s3 cp)"};
  }
  Looked looked;
  looked.found = {read->size, Version(read->etag)};
  looked.headers = std::move(answer->headers);
  return std::optional(std::move(looked));
}

}  // namespace parallelrun::store::s3
