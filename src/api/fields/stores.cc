// Stores of objects, and what a node keeps of them.
#include "api/fields/bind.h"
#include "api/fields/sections.h"
#include "api/fields/shapes.h"
#include "api/job.h"
#include "api/text.h"

namespace parallelrun::fields {
namespace {

constexpr size_t kName = 63;
constexpr size_t kText = 1024;

void ReadStoreUrl(const Value& value, std::string& out) {
  const auto text = value.NonEmptyString(kText);
  if (!text) return;
  out = *text;
  if (!text->starts_with("s3://")) {
    value.Error(Quoted(*text) + " is no store that is known", "write s3://BUCKET/PREFIX");
  }
}

}  // namespace

const FieldList& StoreFields() {
  static const FieldList fields = {
      Bound("name", &ObjectStore::name, Text(kName), "Name that inputs give.").Required(),
      Bound("url", &ObjectStore::url, Text(kText),
            "s3://BUCKET, or s3://BUCKET/PREFIX for what is below the prefix.", ReadStoreUrl)
          .Required("write s3://BUCKET/PREFIX"),
      Bound("region", &ObjectStore::region, Text(kName),
            "Of the bucket; what AWS_REGION or the profile says if not given.")
          .Otherwise("AWS_REGION, or the profile's"),
      Bound("endpoint", &ObjectStore::endpoint, Text(kText),
            "URL of the server; what AWS_ENDPOINT_URL_S3 or the profile says, or AWS's own, if not "
            "given.")
          .Otherwise("AWS_ENDPOINT_URL_S3, or AWS's own"),
      Bound("pathStyle", &ObjectStore::path_style, Boolean(),
            "true: the bucket stands in the path of requests, false: in the host's name. If not "
            "given, in the host's name at AWS alone.")
          .Otherwise("false at AWS, true elsewhere"),
  };
  return fields;
}

const FieldList& CacheFields() {
  static const FieldList fields = {
      Bound("size", &CacheOptions::size, Size(),
            "Bytes on the node's disk, as 20GB (powers of 1024). A mini-batch whose objects take "
            "more fails; 10GB if not given.")
          .Otherwise("10GB"),
  };
  return fields;
}

}  // namespace parallelrun::fields
