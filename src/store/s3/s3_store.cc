#include "store/s3/s3_store.h"

#include <utility>

#include "store/objects/object.h"
#include "store/objects/object_version.h"
#include "store/s3/listing.h"

namespace parallelrun::store::s3 {
namespace {

class S3Store final : public Store {
 public:
  explicit S3Store(std::unique_ptr<Bucket> bucket) : bucket_(std::move(bucket)) {}

  Result<std::unique_ptr<store::Listing>> List(Wanted wanted, const std::string& after) override {
    return std::unique_ptr<store::Listing>(
        std::make_unique<Listing>(*bucket_, std::move(wanted), after));
  }
  Result<bool> IsThere() override { return HoldsAny(*bucket_); }
  Result<std::optional<Found>> Stat(const std::string& name) override {
    return bucket_->Stat(bucket_->address().KeyOf(name));
  }
  Result<std::unique_ptr<store::Object>> Open(const std::string& name) override {
    return OpenObject(*bucket_, bucket_->address().KeyOf(name));
  }
  std::unique_ptr<store::Object> OpenUnseen(const std::string& name,
                                            const Version& version) override {
    return MakeUnseen(*bucket_, bucket_->address().KeyOf(name), version);
  }
  AnswerCounts CountAnswers() const override { return bucket_->CountAnswers(); }
  std::string Location(std::string_view name) const override {
    return bucket_->address().Url(name);
  }
  Result<std::string> RealRoot() override { return Location(""); }
  std::optional<Found> Pinned(const Pin& pin, const std::optional<Found>& now) const override {
    return PinnedObject(pin, now);
  }
  std::string Difference(const Version& was, const Version& is) const override {
    return DifferenceOfObjects(was, is);
  }
  Version AsBefore(const Version& version) const override { return WithoutSize(version); }

 private:
  const std::unique_ptr<Bucket> bucket_;
};

}  // namespace

Result<std::unique_ptr<Store>> MakeStore(const StoreOptions& options, const Surroundings& around,
                                         std::shared_ptr<const Clock> clock) {
  Result<std::unique_ptr<Bucket>> bucket = MakeBucket(options, around, std::move(clock));
  if (!bucket.ok()) return bucket.error();
  return std::unique_ptr<Store>(std::make_unique<S3Store>(std::move(*bucket)));
}

Result<std::unique_ptr<Store>> OpenStore(const Wished& wished, std::stop_token stop) {
  Result<std::unique_ptr<Bucket>> bucket = OpenBucket(wished, std::move(stop));
  if (!bucket.ok()) return bucket.error();
  return std::unique_ptr<Store>(std::make_unique<S3Store>(std::move(*bucket)));
}

}  // namespace parallelrun::store::s3
