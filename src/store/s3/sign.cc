#include "store/s3/sign.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/http/target.h"
#include "base/mac.h"
#include "store/s3/timestamps.h"

namespace parallelrun::store::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr size_t kDay = 8;  // of "20150830T123600Z"

// Without spaces at the ends, and with one in place of several between.
std::string Squeezed(std::string_view value) {
  std::string squeezed;
  for (const char c : value) {
    if (c == ' ' && (squeezed.empty() || squeezed.back() == ' ')) continue;
    squeezed += c;
  }
  if (squeezed.ends_with(' ')) squeezed.pop_back();
  return squeezed;
}

// By lower-case name; the values of several headers of one name in their order, with commas
// between.
std::map<std::string, std::string> SignedHeaders(const HttpRequest& request,
                                                 const std::string& host) {
  std::map<std::string, std::string> all{{"host", host}};
  for (const HttpHeader& header : request.headers) {
    const auto [at, is_new] = all.try_emplace(LowerCase(header.name), Squeezed(header.value));
    if (!is_new) at->second += "," + Squeezed(header.value);
  }
  return all;
}

std::string NamesOf(const std::map<std::string, std::string>& headers) {
  std::string names;
  for (const auto& [name, value] : headers) names += (names.empty() ? "" : ";") + name;
  return names;
}

// Sorted by name, then by value: not as whole texts, where "a-b=" would come before "a=".
std::string CanonicalQuery(std::string_view query) {
  std::vector<std::pair<std::string_view, std::string_view>> parameters;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    const size_t equals = std::min(one.find('='), one.size());
    parameters.emplace_back(one.substr(0, equals), one.substr(std::min(equals + 1, one.size())));
  }
  std::sort(parameters.begin(), parameters.end());
  std::string canonical;
  for (const auto& [name, value] : parameters) {
    canonical += fmt::format("{}{}={}", canonical.empty() ? "" : "&", name, value);
  }
  return canonical;
}

std::string ScopeText(const Scope& scope, const std::string& time) {
  return fmt::format("{}/{}/{}/aws4_request", time.substr(0, kDay), scope.region, scope.service);
}

// `body`: what is signed of it, its SHA-256 or words in place of that.
std::string Canonical(const HttpRequest& request, const std::string& host,
                      const std::string& body) {
  const std::map<std::string, std::string> headers = SignedHeaders(request, host);
  std::string text =
      fmt::format("{}\n{}\n{}\n", request.method, request.path, CanonicalQuery(request.query));
  for (const auto& [name, value] : headers) text += fmt::format("{}:{}\n", name, value);
  return text + fmt::format("\n{}\n{}", NamesOf(headers), body);
}

std::string Signature(const std::string& canonical, const Keys& keys, const Scope& scope,
                      WallTime now) {
  const std::string day = HmacSha256("AWS4" + keys.secret, CompactTime(now).substr(0, kDay));
  const std::string key =
      HmacSha256(HmacSha256(HmacSha256(day, scope.region), scope.service), "aws4_request");
  return HmacSha256Hex(key, StringToSign(canonical, scope, now));
}

}  // namespace

std::string CanonicalRequest(const HttpRequest& request, const std::string& host) {
  return Canonical(request, host, Sha256Hex(request.body));
}

std::string StringToSign(const std::string& canonical, const Scope& scope, WallTime now) {
  const std::string time = CompactTime(now);
  return fmt::format("{}\n{}\n{}\n{}", kAlgorithm, time, ScopeText(scope, time),
                     Sha256Hex(canonical));
}

void Sign(HttpRequest& request, const std::string& host, const Keys& keys, const Scope& scope,
          WallTime now) {
  const std::string time = CompactTime(now);
  request.headers.push_back({"X-Amz-Date", time});
  if (scope.service == "s3") {
    request.headers.push_back({"X-Amz-Content-Sha256", Sha256Hex(request.body)});
  }
  if (!keys.token.empty()) request.headers.push_back({"X-Amz-Security-Token", keys.token});
  const std::string signature = Signature(CanonicalRequest(request, host), keys, scope, now);
  request.headers.push_back(
      {"Authorization",
       fmt::format("{} Credential={}/{}, SignedHeaders={}, Signature={}", kAlgorithm, keys.id,
                   ScopeText(scope, time), NamesOf(SignedHeaders(request, host)), signature)});
}

void Presign(HttpRequest& request, const std::string& host, const Keys& keys, const Scope& scope,
             WallTime now, Duration life) {
  const std::string time = CompactTime(now);
  const auto add = [&](const char* name, const std::string& value) {
    if (!request.query.empty()) request.query += '&';
    request.query += fmt::format("{}={}", name, PercentEncode(value));
  };
  add("X-Amz-Algorithm", std::string(kAlgorithm));
  add("X-Amz-Credential", keys.id + "/" + ScopeText(scope, time));
  add("X-Amz-Date", time);
  add("X-Amz-Expires", std::to_string(std::chrono::floor<seconds>(life).count()));
  if (!keys.token.empty()) add("X-Amz-Security-Token", keys.token);
  add("X-Amz-SignedHeaders", NamesOf(SignedHeaders(request, host)));
  // S3 alone takes a request whose body nobody has signed.
  const std::string body = scope.service == "s3" ? "UNSIGNED-PAYLOAD" : Sha256Hex(request.body);
  add("X-Amz-Signature", Signature(Canonical(request, host, body), keys, scope, now));
}

}  // namespace parallelrun::store::s3
