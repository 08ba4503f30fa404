#include "store/s3/open_bucket.h"

#include <utility>

#include "store/s3/credentials.h"

namespace parallelrun::store::s3 {

Result<std::unique_ptr<Bucket>> MakeBucket(const StoreOptions& options, const Surroundings& around,
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
  bucket.tally = options.tally;
  if (const std::string file = around.Variable("AWS_CA_BUNDLE"); !file.empty()) {
    Result<std::string> pem = ReadTrimmed(file);
    if (!pem.ok()) return pem.error().With("AWS_CA_BUNDLE");
    bucket.ca_pem = std::move(*pem);
  }
  Result<Source> source =
      options.keys.folder.empty() ? SourceOf(around, bucket.region) : SourceOf(options.keys);
  if (!source.ok()) return source.error().With(bucket.address.Url(""));
  auto credentials = std::make_unique<Credentials>(
      std::move(*source), FetchOptions{bucket.ca_pem, seconds(5), options.stop}, std::move(clock));
  return Bucket::Make(std::move(bucket), std::move(credentials));
}

Result<std::unique_ptr<Bucket>> OpenBucket(const Wished& wished, std::stop_token stop,
                                           const RetryLimits& limits) {
  const Result<Surroundings> around = ReadSurroundings();
  if (!around.ok()) return around.error().With(wished.url);
  StoreOptions options;
  options.url = wished.url;
  options.region = wished.region;
  options.endpoint = wished.endpoint;
  if (wished.path_style) options.style = *wished.path_style ? Style::kPath : Style::kVirtualHost;
  options.keys = wished.keys;
  options.stop = std::move(stop);
  options.limits = limits;
  options.tally = wished.tally;
  return MakeBucket(options, *around, std::make_shared<SystemClock>());
}

}  // namespace parallelrun::store::s3
