// Where a bucket is: taken from its URL, its region and its endpoint. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::store::s3 {

struct Address {
  std::string bucket;
  std::string prefix;  // "a/b" for keys that begin with "a/b/"; empty: all of the bucket

  // The key of a name that is relative to the prefix, and back. NameOf: of keys that begin with
  // KeyOf(""), and only of these.
  std::string KeyOf(std::string_view name) const;
  std::string_view NameOf(std::string_view key) const;
  // "s3://bucket/a/b", and for a name one '/' and the name behind it.
  std::string Url(std::string_view name) const;
};

// "s3://bucket", "s3://bucket/prefix", "s3://bucket/prefix/". Keys stand in it as they are, without
// percent-encoding, as in the other tools. kInvalid for what is not so, with the reason.
Result<Address> ParseAddress(const std::string& url);

// How a bucket is asked for: in the host's name ("virtual host style") or as the path's first part.
enum class Style { kVirtualHost, kPath };

// Where requests for one bucket go.
struct Server {
  std::string url;          // "https://host", for the client
  std::string host;         // as the header Host names it, for the signature
  std::string path_prefix;  // before "/" and the key: "/bucket" in path style
  std::string region;
};

// AWS's endpoint of the region where `endpoint` is empty. Without `style`: in the host's name at
// AWS, but for buckets with dots, which its certificate does not name; as a path at others, which
// all of them understand, also where no name server knows their buckets. kInvalid for an endpoint
// or a region that cannot be one.
Result<Server> ServerOf(const std::string& bucket, const std::string& region,
                        const std::string& endpoint, std::optional<Style> style);

// "amazonaws.com", or what the region's partition has in its place.
std::string DomainOf(const std::string& region);

// Whether `text` has the form of a region: it becomes a part of a host's name.
bool IsRegion(std::string_view text);

}  // namespace parallelrun::store::s3
