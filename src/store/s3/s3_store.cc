#include "store/s3/s3_store.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/escape.h"
#include "store/s3/answers.h"
#include "store/s3/listing.h"

namespace parallelrun::s3 {
namespace {

constexpr size_t kShown = 300;

std::string TextOf(const store::Found& found) {
  return fmt::format("{} bytes, ETag {}", found.size, Printable(found.version.bytes(), kShown));
}

std::string DifferenceOf(const store::Found& was, const store::Found& is) {
  return "had " + TextOf(was) + "; has " + TextOf(is);
}

// Nothing: it is not there.
Result<std::optional<store::Found>> Stat(Bucket& bucket, const std::string& key) {
  Question question;
  question.action = Action::kStat;
  question.key = key;
  const Result<HttpResponse> answer = bucket.Ask(question);
  if (!answer.ok() && answer.error().code == Code::kNotFound) return std::optional<store::Found>();
  if (!answer.ok()) return answer.error();
  const std::string_view length = answer->Header("Content-Length");
  store::Found found;
  const char* end = length.data() + length.size();
  const auto [stopped, error] = std::from_chars(length.data(), end, found.size);
  const std::string etag = PlainEtag(answer->Header("ETag"));
  const bool usable = !etag.empty() && etag.size() <= store::Version::kMost;
  if (error != std::errc() || stopped != end || !usable) {
    return Error{
        Code::kInvalid,
        fmt::format("s3://{}/{}: the server tells no size or no ETag, without which nobody "
                    "knows whether an object was changed",
                    bucket.address().bucket, Printable(key, kShown))};
  }
  found.version = store::Version(etag);
  return std::optional(std::move(found));
}

class Object final : public store::Object {
 public:
  Object(Bucket& bucket, std::string key, store::Found found)
      : bucket_(bucket), key_(std::move(key)), found_(std::move(found)) {}

  const store::Found& found() const override { return found_; }

  Result<size_t> ReadAt(uint64_t offset, std::span<char> to) const override {
    if (offset >= found_.size || to.empty()) return size_t{0};
    Question question;
    question.action = Action::kRead;
    question.key = key_;
    question.into =
        to.first(static_cast<size_t>(std::min<uint64_t>(to.size(), found_.size - offset)));
    const uint64_t last = offset + question.into.size() - 1;
    question.headers = {{"Range", fmt::format("bytes={}-{}", offset, last)},
                        {"If-Match", fmt::format("\"{}\"", found_.version.bytes())}};
    const Result<HttpResponse> answer = bucket_.Ask(question);
    if (!answer.ok()) return Changed(answer.error());
    const std::string range = fmt::format("bytes {}-{}/", offset, last);
    const bool whole = offset == 0 && question.into.size() == found_.size;
    const bool right =
        answer->status == 206 ? answer->Header("Content-Range").starts_with(range) : whole;
    if (right) return question.into.size();
    return Error{Code::kInvalid,
                 Place() + ": the server gives other bytes than those asked for (Range)"};
  }

 private:
  std::string Place() const {
    return fmt::format("s3://{}/{}", bucket_.address().bucket, Printable(key_, kShown));
  }
  // Says how it changed, if it did.
  Error Changed(Error error) const {
    if (error.code == Code::kNotFound) {
      return {Code::kStale, Place() + " was deleted since it was opened"};
    }
    if (error.code == Code::kInternal) {
      return {Code::kInvalid,
              Place() + ": the server gives more bytes than were asked for (Range)"};
    }
    if (error.code != Code::kStale) return error;
    const Result<std::optional<store::Found>> now = Stat(bucket_, key_);
    if (!now.ok()) return error;
    return {Code::kStale,
            Place() + (*now ? " was changed since it was opened: it " + DifferenceOf(found_, **now)
                            : " was deleted since it was opened")};
  }

  Bucket& bucket_;
  const std::string key_;
  const store::Found found_;
};

class S3Store final : public store::Store {
 public:
  explicit S3Store(std::unique_ptr<Bucket> bucket) : bucket_(std::move(bucket)) {}

  Result<std::unique_ptr<store::Listing>> List(store::Wanted wanted,
                                               const std::string& after) override {
    return std::unique_ptr<store::Listing>(
        std::make_unique<Listing>(*bucket_, std::move(wanted), after));
  }
  Result<std::optional<store::Found>> Stat(const std::string& name) override {
    return s3::Stat(*bucket_, bucket_->address().KeyOf(name));
  }
  Result<std::unique_ptr<store::Object>> Open(const std::string& name) override {
    const std::string key = bucket_->address().KeyOf(name);
    Result<std::optional<store::Found>> found = s3::Stat(*bucket_, key);
    if (!found.ok()) return found.error();
    if (!*found) {
      return Error{Code::kNotFound,
                   Printable(Location(name), kShown) + ": there is no such object"};
    }
    return std::unique_ptr<store::Object>(
        std::make_unique<Object>(*bucket_, key, std::move(**found)));
  }
  std::string Location(std::string_view name) const override {
    return bucket_->address().Url(name);
  }
  std::string Difference(const store::Version& was, const store::Version& is) const override {
    return fmt::format("had ETag {}, has {}", Printable(was.bytes(), kShown),
                       Printable(is.bytes(), kShown));
  }

 private:
  const std::unique_ptr<Bucket> bucket_;
};

}  // namespace

Result<std::unique_ptr<store::Store>> MakeStore(const StoreOptions& options,
                                                const Surroundings& around,
                                                std::shared_ptr<const Clock> clock) {
  Result<Address> address = ParseAddress(options.url);
  if (!address.ok()) return address.error();
  BucketOptions bucket;
  bucket.address = std::move(*address);
  bucket.region = around.Region(options.region);
  bucket.endpoint = around.Endpoint(options.endpoint);
  bucket.style = options.style;
  bucket.limits = options.limits;
  bucket.first_byte = options.first_byte;
  bucket.clock = clock;
  bucket.stop = options.stop;
  if (const std::string file = around.Variable("AWS_CA_BUNDLE"); !file.empty()) {
    Result<std::string> pem = ReadTrimmed(file);
    if (!pem.ok()) return pem.error().With("AWS_CA_BUNDLE");
    bucket.ca_pem = std::move(*pem);
  }
  Result<Source> source = SourceOf(around, bucket.region);
  if (!source.ok()) return source.error().With(bucket.address.Url(""));
  auto credentials = std::make_unique<Credentials>(
      std::move(*source), FetchOptions{bucket.ca_pem, seconds(5), options.stop}, std::move(clock));
  Result<std::unique_ptr<Bucket>> made = Bucket::Make(std::move(bucket), std::move(credentials));
  if (!made.ok()) return made.error();
  return std::unique_ptr<store::Store>(std::make_unique<S3Store>(std::move(*made)));
}

Result<std::unique_ptr<store::Store>> OpenStore(const Wished& wished, std::stop_token stop) {
  const Result<Surroundings> around = ReadSurroundings();
  if (!around.ok()) return around.error().With(wished.url);
  StoreOptions options;
  options.url = wished.url;
  options.region = wished.region;
  options.endpoint = wished.endpoint;
  if (wished.path_style) options.style = *wished.path_style ? Style::kPath : Style::kVirtualHost;
  options.stop = std::move(stop);
  return MakeStore(options, *around, std::make_shared<SystemClock>());
}

}  // namespace parallelrun::s3
