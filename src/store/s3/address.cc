#include "store/s3/address.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/escape.h"
#include "base/http/client/url.h"

namespace parallelrun::store::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr size_t kShortest = 3;   // of a bucket's name
constexpr size_t kLongest = 255;  // before 2018; 63 since
constexpr size_t kLongestKey = 1024;
constexpr size_t kLongestHostPart = 63;

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool IsLetterOrDigit(char c) { return IsLower(c) || (c >= 'A' && c <= 'Z'); }

bool IsBucket(std::string_view name) {
  return name.size() >= kShortest && name.size() <= kLongest && IsLetterOrDigit(name.front()) &&
         IsLetterOrDigit(name.back()) && name.find("..") == std::string_view::npos &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '.' || c == '_'; });
}

// Can be the first part of a host's name, and is covered by a certificate for "*.host".
bool IsHostPart(std::string_view name) {
  return name.size() <= kLongestHostPart &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLower(c) || c == '-'; });
}

}  // namespace

std::string Address::KeyOf(std::string_view name) const {
  return (prefix.empty() ? "" : prefix + "/").append(name);
}

std::string_view Address::NameOf(std::string_view key) const {
  return key.substr(prefix.empty() ? 0 : prefix.size() + 1);
}

std::string Address::Url(std::string_view name) const {
  std::string url = fmt::format("{}{}", kScheme, bucket);
  if (!prefix.empty()) url += "/" + prefix;
  return name.empty() ? url : (url + "/").append(name);
}

Result<Address> ParseAddress(const std::string& url) {
  const auto wrong = [&](const std::string& why) {
    return Error{Code::kInvalid, Printable(url, kShownShort) + ": " + why};
  };
  if (!url.starts_with(kScheme)) return wrong("write s3://BUCKET/PREFIX");
  std::string_view rest = std::string_view(url).substr(kScheme.size());
  const std::string_view bucket = rest.substr(0, rest.find('/'));
  if (bucket.starts_with("arn:")) {
    return wrong("ARNs are not understood; write the alias of the access point as the bucket");
  }
  if (!IsBucket(bucket)) {
    return wrong("\"" + Printable(bucket, kShownShort) +
                 "\" is not a name of a bucket, which has 3 to 63 lower-case letters, digits, "
                 "dots and hyphens; write s3://BUCKET/PREFIX");
  }
  if (bucket.ends_with("--x-s3")) {
    return wrong("a directory bucket does not list its keys in order; use a general one");
  }
  rest.remove_prefix(std::min(rest.size(), bucket.size() + 1));
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.size() > kLongestKey) return wrong("a key has at most 1,024 bytes");
  return Address{std::string(bucket), std::string(rest)};
}

bool IsRegion(std::string_view text) { return !text.empty() && IsHostPart(text); }

std::string DomainOf(const std::string& region) {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

Result<Server> ServerOf(const std::string& bucket, const std::string& region,
                        const std::string& endpoint, std::optional<Style> style) {
  if (!IsRegion(region)) {
    return Error{Code::kInvalid, "\"" + Printable(region, kShownShort) +
                                     "\" is not a region; write one as eu-central-1"};
  }
  Server server;
  server.region = region;
  const bool at_aws = endpoint.empty();
  const std::string base =
      at_aws ? fmt::format("https://s3.{}.{}", region, DomainOf(region)) : endpoint;
  Result<HttpUrl> url = ParseHttpUrl(base);
  if (!url.ok()) {
    return url.error().With("the endpoint \"" + Printable(endpoint, kShownShort) + "\"");
  }
  const Style usual = at_aws && IsHostPart(bucket) ? Style::kVirtualHost : Style::kPath;
  server.path_prefix = url->prefix;
  if (style.value_or(usual) == Style::kPath) {
    server.path_prefix += "/" + bucket;
  } else {
    url->host = bucket + "." + url->host;
  }
  server.host = url->HostHeader();
  server.url = (url->tls ? "https://" : "http://") + server.host;
  return server;
}

}  // namespace parallelrun::store::s3
