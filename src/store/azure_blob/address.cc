#include "store/azure_blob/address.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <optional>

#include "base/escape.h"
#include "base/http/client/url.h"
#include "base/http/target.h"

namespace parallelrun::store::azure_blob {
namespace {

constexpr std::string_view kAbfss = "abfss://";
constexpr std::string_view kHttps = "https://";
constexpr std::string_view kForms =
    "write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX, or "
    "https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX";
constexpr size_t kLongestAccount = 24;
constexpr size_t kShortest = 3;  // of an account's name and a container's
constexpr size_t kLongestContainer = 63;
constexpr size_t kLongestName = 4096;  // bytes; Azure's have up to 1,024 characters

bool IsLower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool IsAccount(std::string_view name) {
  return name.size() >= kShortest && name.size() <= kLongestAccount &&
         std::all_of(name.begin(), name.end(), IsLower);
}

bool IsContainer(std::string_view name) {
  if (name == "$root" || name == "$web" || name == "$logs") return true;
  return name.size() >= kShortest && name.size() <= kLongestContainer && IsLower(name.front()) &&
         IsLower(name.back()) && name.find("--") == std::string_view::npos &&
         std::all_of(name.begin(), name.end(), [](char c) { return IsLower(c) || c == '-'; });
}

// Behind the account: labels of a host's name, one of which tells the service.
bool IsDomain(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.back() != '.' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLower(c) || c == '-' || c == '.'; });
}

// `domain` with another service in it: "dfs.core.windows.net" for "blob.core.windows.net". Nothing:
// it has no service of that name.
std::optional<std::string> WithService(std::string_view domain, std::string_view was,
                                       std::string_view is) {
  const std::string label = fmt::format(".{}.", was);
  const size_t at = fmt::format(".{}", domain).find(label);
  if (at == std::string::npos) return std::nullopt;
  return std::string(domain).replace(at, was.size(), is);
}

std::string_view TakeUntil(std::string_view& text, char end) {
  const std::string_view taken = text.substr(0, text.find(end));
  text.remove_prefix(std::min(text.size(), taken.size() + 1));
  return taken;
}

// Some of it is.
bool IsEncoded(std::string_view text) {
  for (size_t at = text.find('%'); at < text.size(); at = text.find('%', at + 1)) {
    if (PercentDecode(text.substr(at, 3))) return true;
  }
  return false;
}

}  // namespace

std::string Address::KeyOf(std::string_view name) const {
  return (prefix.empty() ? "" : prefix + "/").append(name);
}

std::string Address::Url(std::string_view name) const {
  std::string url = fmt::format("{}{}@{}.{}", kAbfss, container, account, domain);
  if (!prefix.empty()) url += "/" + prefix;
  return name.empty() ? url : (url + "/").append(name);
}

bool IsUrl(std::string_view text) { return text.starts_with(kAbfss) || text.starts_with(kHttps); }

bool MayHoldSas(std::string_view text) {
  const size_t query = text.find('?');
  if (!IsUrl(text) || query == std::string_view::npos) return false;
  return text.starts_with(kHttps) || text.find("sig=", query) != std::string_view::npos;
}

Result<Address> ParseAddress(const std::string& url) {
  const std::string shown = Printable(url.substr(0, url.find('?')), kShownShort);
  const auto wrong = [&](std::string_view why) {
    return Error{Code::kInvalid, fmt::format("{}: {}", shown, why)};
  };
  if (!IsUrl(url)) return wrong(kForms);
  const bool https = url.starts_with(kHttps);
  if (MayHoldSas(url)) {
    return wrong(
        "what follows the ? does not belong here: a SAS is a secret, and goes into "
        "AZURE_STORAGE_SAS_TOKEN (a glob with a ? in it is written behind abfss://)");
  }
  std::string_view rest = std::string_view(url).substr(https ? kHttps.size() : kAbfss.size());
  std::string_view place = TakeUntil(rest, '/');
  const bool of_s3 =
      https && (place.ends_with(".amazonaws.com") || place.ends_with(".amazonaws.com.cn"));
  Address address;
  if (https) {
    address.container = TakeUntil(rest, '/');
  } else {
    if (place.find('@') == std::string_view::npos) return wrong(kForms);
    address.container = TakeUntil(place, '@');
  }
  address.account = TakeUntil(place, '.');
  const std::optional<std::string> domain =
      https ? WithService(place, "blob", "dfs") : WithService(place, "dfs", "dfs");
  if (of_s3) {
    return wrong(
        "what lies in S3 is written s3://BUCKET/PREFIX, and read with credentials, not by the "
        "signature of a URL (docs/stores.md)");
  }
  if (https && !domain) {
    return wrong(
        fmt::format("no web address but those of Azure Blob Storage is read: download what "
                    "is there; of a container {}",
                    kForms));
  }
  if (!domain || !IsDomain(*domain)) return wrong(kForms);
  address.domain = *domain;
  if (!IsAccount(address.account)) {
    return wrong("\"" + Printable(address.account, kShownShort) +
                 "\" is not a name of an account, which has 3 to 24 lower-case letters and digits");
  }
  if (!IsContainer(address.container)) {
    return wrong("\"" + Printable(address.container, kShownShort) +
                 "\" is not a name of a container, which has 3 to 63 lower-case letters, digits "
                 "and single hyphens");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.size() > kLongestName) return wrong("a blob's name has at most 1,024 characters");
  if (https && IsEncoded(rest)) {
    return wrong("names stand in it as they are: write %20 as a space, and so on");
  }
  address.prefix = rest;
  return address;
}

bool IsPrivate(const std::string& url) {
  const Result<HttpUrl> parsed = ParseHttpUrl(url);
  return parsed.ok() && (parsed->tls || parsed->host == "localhost" || parsed->host == "::1" ||
                         parsed->host.starts_with("127."));
}

Result<Server> ServerOf(const Address& address, const std::string& endpoint) {
  const std::string own =
      fmt::format("https://{}.{}", address.account, *WithService(address.domain, "dfs", "blob"));
  const std::string& base = endpoint.empty() ? own : endpoint;
  const Result<HttpUrl> url = ParseHttpUrl(base);
  if (!url.ok())
    return url.error().With("the endpoint \"" + Printable(endpoint, kShownShort) + "\"");
  Server server;
  server.host = url->HostHeader();
  server.url = (url->tls ? "https://" : "http://") + server.host;
  server.path_prefix = url->prefix + "/" + address.container;
  server.is_private = IsPrivate(base);
  return server;
}

}  // namespace parallelrun::store::azure_blob
