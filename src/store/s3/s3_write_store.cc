#include "store/s3/s3_write_store.h"

#include <spdlog/fmt/fmt.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "base/http/message.h"
#include "base/http/target.h"
#include "store/objects/object.h"
#include "store/s3/answers.h"
#include "store/s3/look.h"

namespace parallelrun::store::s3 {
namespace {

constexpr uint64_t kSmallestPart = uint64_t{5} << 20;
constexpr uint32_t kMostParts = 10000;
constexpr std::string_view kMark = "x-amz-meta-";

HttpHeader ConditionOf(const Expected& expected) {
  if (!expected) return {"If-None-Match", "*"};
  return {"If-Match", fmt::format("\"{}\"", expected->bytes())};
}

HttpHeaders HeadersOfEncryption(const Encryption& encryption) {
  HttpHeaders headers;
  if (encryption.algorithm.empty()) return headers;
  headers.push_back({"x-amz-server-side-encryption", encryption.algorithm});
  if (!encryption.kms_key_id.empty()) {
    headers.push_back({"x-amz-server-side-encryption-aws-kms-key-id", encryption.kms_key_id});
  }
  return headers;
}

Marks MarksOf(const HttpHeaders& headers) {
  Marks marks;
  for (const HttpHeader& header : headers) {
    const std::string name = LowerCase(header.name);
    if (name.starts_with(kMark)) marks.emplace(name.substr(kMark.size()), header.value);
  }
  return marks;
}

// What an ETag may hold that XML must not.
std::string XmlText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string OfUpload(const std::string& id) { return "uploadId=" + PercentEncode(id); }

// `etags`: of the parts, by number.
Status CompleteAt(Bucket& bucket, const std::string& key, const std::string& id,
                  const std::map<uint32_t, std::string>& etags, const Expected& expected) {
  std::string body = "<CompleteMultipartUpload>";
  for (const auto& [number, etag] : etags) {
    body += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>\"{}\"</ETag></Part>", number,
                        XmlText(etag));
  }
  Question question;
  question.action = Action::kWrite;
  question.key = key;
  question.method = "POST";
  question.query = OfUpload(id);
  question.headers = {ConditionOf(expected), {"Content-Type", "application/xml"}};
  question.body = body + "</CompleteMultipartUpload>";
  const Result<HttpResponse> answer = bucket.Ask(std::move(question));
  if (!answer.ok()) return answer.error();
  if (IsCompleted(answer->body)) return {};
  return Error{Code::kUnavailable,
               fmt::format("s3://{}/{}: the server does not say whether the upload was completed",
                           bucket.address().bucket, Printable(key, kShown))};
}

class S3Upload final : public Upload {
 public:
  S3Upload(Bucket& bucket, std::string key, std::string id)
      : bucket_(bucket), key_(std::move(key)), id_(std::move(id)) {}

  const std::string& id() const override { return id_; }

  Status Send(uint32_t number, std::string bytes) override {
    Question question = About();
    question.method = "PUT";
    question.query = fmt::format("partNumber={}&{}", number, OfUpload(id_));
    question.body = std::move(bytes);
    const Result<HttpResponse> answer = bucket_.Ask(std::move(question));
    if (!answer.ok()) return answer.error();
    std::string etag = PlainEtag(answer->Header("ETag"));
    if (etag.empty()) return Error{Code::kInvalid, Place() + ": the server gives a part no ETag"};
    const std::lock_guard lock(mutex_);
    etags_[number] = std::move(etag);
    return {};
  }

  Status Complete(const Expected& expected) override {
    std::map<uint32_t, std::string> etags;
    {
      const std::lock_guard lock(mutex_);
      etags = etags_;
    }
    return CompleteAt(bucket_, key_, id_, etags, expected);
  }

 private:
  Question About() const {
    Question question;
    question.action = Action::kWrite;
    question.key = key_;
    return question;
  }
  std::string Place() const {
    return fmt::format("s3://{}/{}", bucket_.address().bucket, Printable(key_, kShown));
  }

  Bucket& bucket_;
  const std::string key_;
  const std::string id_;
  std::mutex mutex_;                       // guards what follows
  std::map<uint32_t, std::string> etags_;  // of the parts that were sent, by number
};

class S3WriteStore final : public WriteStore {
 public:
  S3WriteStore(std::unique_ptr<Bucket> bucket, const Encryption& encryption)
      : bucket_(std::move(bucket)), encryption_(HeadersOfEncryption(encryption)) {}

  std::string Location(const std::string& name) const override {
    return bucket_->address().Url(name);
  }
  Parts parts() const override { return {kSmallestPart, kMostParts}; }

  Result<std::optional<Stored>> Look(const std::string& name) override {
    Result<std::optional<Looked>> looked = LookAt(*bucket_, KeyOf(name));
    if (!looked.ok()) return looked.error();
    if (!*looked) return std::optional<Stored>();
    return std::optional(Stored{(*looked)->found, MarksOf((*looked)->headers)});
  }

  Result<std::optional<Text>> Read(const std::string& name) override {
    Result<HttpResponse> answer = bucket_->Ask(About(Action::kRead, name));
    if (!answer.ok() && answer.error().code == Code::kNotFound) return std::optional<Text>();
    if (!answer.ok()) return answer.error();
    std::string etag = PlainEtag(answer->Header("ETag"));
    if (etag.empty() || etag.size() > Version::kMost) {
      return Error{Code::kInvalid, Location(name) + ": the server tells no ETag"};
    }
    return std::optional(Text{std::move(answer->body), Version(std::move(etag))});
  }

  std::unique_ptr<store::Object> Open(const std::string& name, const Found& found) override {
    return MakeObject(*bucket_, KeyOf(name), found);
  }

  Status Put(const std::string& name, const std::string& text, const Expected& expected,
             const Marks& marks) override {
    Question question = About(Action::kWrite, name);
    question.method = "PUT";
    question.headers = HeadersOf(marks);
    question.headers.push_back(ConditionOf(expected));
    question.body = text;
    question.repeats_conflicts = true;
    const Result<HttpResponse> answer = bucket_->Ask(std::move(question));
    if (answer.ok()) return {};
    // What was to be replaced, and is gone, is not what was expected either.
    const bool gone = expected && answer.error().code == Code::kNotFound;
    return gone ? Error{Code::kStale, answer.error().message} : answer.error();
  }

  Status Remove(const std::string& name) override {
    Question question = About(Action::kRemove, name);
    question.method = "DELETE";
    return UnlessGone(bucket_->Ask(std::move(question)));
  }

  Result<std::unique_ptr<Upload>> Begin(const std::string& name, const Marks& marks) override {
    Question question = About(Action::kWrite, name);
    question.method = "POST";
    question.query = "uploads=";
    question.headers = HeadersOf(marks);  // its parts are encrypted as it is
    const Result<HttpResponse> answer = bucket_->Ask(std::move(question));
    if (!answer.ok()) return answer.error();
    Result<std::string> id = ParseUploadId(answer->body);
    if (!id.ok()) return id.error().With(Location(name));
    return std::unique_ptr<Upload>(
        std::make_unique<S3Upload>(*bucket_, KeyOf(name), std::move(*id)));
  }

  Status EndUpload(const std::string& name, const std::string& id) override {
    Question question = About(Action::kEndUpload, name);
    question.method = "DELETE";
    question.query = OfUpload(id);
    return UnlessGone(bucket_->Ask(std::move(question)));
  }

  Result<SignedUrl> SignPart(const std::string& name, const std::string& id, uint32_t number,
                             Duration life) override {
    HttpRequest request;
    request.method = "PUT";
    request.query = fmt::format("partNumber={}&{}", number, OfUpload(id));
    return bucket_->SignRequest(KeyOf(name), std::move(request), life);
  }

  Status CompleteUpload(const std::string& name, const std::string& id,
                        const std::vector<std::string>& etags, const Expected& expected) override {
    std::map<uint32_t, std::string> by_number;
    for (const std::string& etag : etags) {
      by_number.emplace(static_cast<uint32_t>(by_number.size() + 1), etag);
    }
    return CompleteAt(*bucket_, KeyOf(name), id, by_number, expected);
  }

  Result<bool> HasUpload(const std::string& name, const std::string& id) override {
    Question question = About(Action::kLookAtUpload, name);
    question.query = "max-parts=1&" + OfUpload(id);
    const Result<HttpResponse> answer = bucket_->Ask(std::move(question));
    if (!answer.ok() && answer.error().code == Code::kNotFound) return false;
    if (!answer.ok()) return answer.error();
    return true;
  }

 private:
  // Of a new object.
  HttpHeaders HeadersOf(const Marks& marks) const {
    HttpHeaders headers = encryption_;
    for (const auto& [mark, value] : marks) {
      headers.push_back({std::string(kMark) + mark, value});
    }
    return headers;
  }
  std::string KeyOf(const std::string& name) const { return bucket_->address().KeyOf(name); }
  Question About(Action action, const std::string& name) const {
    Question question;
    question.action = action;
    question.key = KeyOf(name);
    return question;
  }
  static Status UnlessGone(const Result<HttpResponse>& answer) {
    if (answer.ok() || answer.error().code == Code::kNotFound) return {};
    return answer.error();
  }

  const std::unique_ptr<Bucket> bucket_;
  const HttpHeaders encryption_;
};

}  // namespace

std::unique_ptr<WriteStore> MakeWriteStore(std::unique_ptr<Bucket> bucket,
                                           const Encryption& encryption) {
  return std::make_unique<S3WriteStore>(std::move(bucket), encryption);
}

}  // namespace parallelrun::store::s3
