#include "store/s3/url_signer.h"

#include <atomic>
#include <string>
#include <utility>

#include "base/escape.h"
#include "store/objects/object_version.h"

namespace parallelrun::store::s3 {
namespace {

// Whoever waits for a URL holds up the answer to a node.
RetryLimits BriefLimits() {
  RetryLimits limits;
  limits.most = 2;
  limits.in_all = seconds(5);
  return limits;
}

class S3UrlSigner final : public UrlSigner {
 public:
  S3UrlSigner(std::unique_ptr<Bucket> bucket, Duration life)
      : bucket_(std::move(bucket)), root_("s3://" + bucket_->address().bucket + "/"), life_(life) {}

  Result<SignedUrl> Sign(const std::string& location, const Version& version) override {
    if (!location.starts_with(root_)) {
      return Error{Code::kInvalid, Printable(location, kShownLong) + " is not in " + root_};
    }
    const std::string key = location.substr(root_.size());
    // A request of its own is what finds the bucket's region, and a clock that is wrong: those that
    // a URL makes are answered to somebody else. What is there does not matter.
    if (!asked_) {
      const Result<std::optional<Found>> found = bucket_->Stat(key);
      if (!found.ok() && found.error().code == Code::kUnavailable) return found.error();
      asked_ = true;
    }
    return bucket_->SignUrl(key, EtagOf(version), life_);
  }

 private:
  const std::unique_ptr<Bucket> bucket_;
  const std::string root_;
  const Duration life_;
  std::atomic<bool> asked_ = false;
};

}  // namespace

Result<std::unique_ptr<UrlSigner>> MakeUrlSigner(const StoreOptions& options,
                                                 const Surroundings& around,
                                                 std::shared_ptr<const Clock> clock,
                                                 Duration life) {
  Result<std::unique_ptr<Bucket>> bucket = MakeBucket(options, around, std::move(clock));
  if (!bucket.ok()) return bucket.error();
  return std::unique_ptr<UrlSigner>(std::make_unique<S3UrlSigner>(std::move(*bucket), life));
}

Result<std::unique_ptr<UrlSigner>> OpenUrlSigner(const Wished& wished, std::stop_token stop,
                                                 Duration life) {
  Result<std::unique_ptr<Bucket>> bucket = OpenBucket(wished, std::move(stop), BriefLimits());
  if (!bucket.ok()) return bucket.error();
  return std::unique_ptr<UrlSigner>(std::make_unique<S3UrlSigner>(std::move(*bucket), life));
}

}  // namespace parallelrun::store::s3
