#include "store/azure_blob/sign.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/base64.h"
#include "base/http/target.h"
#include "base/mac.h"
#include "store/objects/http_date.h"

namespace parallelrun::store::azure_blob {
namespace {

// Of the interface. It has all that is used here; older copies of the service, and servers like it,
// refuse one that they do not know.
constexpr const char* kVersion = "2021-12-02";

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower;
}

// A line for each header of the service's own, by name.
std::string CanonicalHeaders(const HttpRequest& request) {
  std::map<std::string, std::string> lines;
  for (const HttpHeader& header : request.headers) {
    const std::string name = Lower(header.name);
    if (name.starts_with("x-ms-")) lines[name] = header.value;
  }
  std::string text;
  for (const auto& [name, value] : lines) text += fmt::format("{}:{}\n", name, value);
  return text;
}

// The account, the path, and a line for each parameter, by name, its values decoded and sorted.
std::string CanonicalResource(const HttpRequest& request, const std::string& account) {
  std::map<std::string, std::string> parameters;
  std::string_view query = request.query;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), one.size() + 1));
    const size_t equals = std::min(one.find('='), one.size());
    const std::string_view value = one.substr(std::min(equals + 1, one.size()));
    parameters[Lower(PercentDecode(one.substr(0, equals)).value_or(""))] =
        PercentDecode(value).value_or("");
  }
  std::string text = fmt::format("/{}{}", account, request.path);
  for (const auto& [name, value] : parameters) text += fmt::format("\n{}:{}", name, value);
  return text;
}

void Prove(HttpRequest& request, const SharedKey& key) {
  const std::string signature =
      EncodeBase64(HmacSha256(key.key, StringToSign(request, key.account)));
  request.headers.push_back(
      {"Authorization", fmt::format("SharedKey {}:{}", key.account, signature)});
}

void Prove(HttpRequest& request, const Sas& sas) {
  request.query += (request.query.empty() ? "" : "&") + sas.token;
}

void Prove(HttpRequest& request, const Bearer& bearer) {
  request.headers.push_back({"Authorization", "Bearer " + bearer.token});
}

}  // namespace

std::string StringToSign(const HttpRequest& request, const std::string& account) {
  static constexpr std::array kBefore{"Content-Encoding", "Content-Language"};
  // The time stands in x-ms-date, so Date stays empty.
  static constexpr std::array kBehind{"Content-MD5",         "Content-Type", "",
                                      "If-Modified-Since",   "If-Match",     "If-None-Match",
                                      "If-Unmodified-Since", "Range"};
  std::string text = request.method + "\n";
  for (const char* name : kBefore) text += fmt::format("{}\n", request.Header(name));
  text += (request.body.empty() ? "" : std::to_string(request.body.size())) + "\n";
  for (const char* name : kBehind) text += fmt::format("{}\n", request.Header(name));
  return text + CanonicalHeaders(request) + CanonicalResource(request, account);
}

void Sign(HttpRequest& request, const Proof& proof, WallTime now) {
  request.headers.push_back({"x-ms-date", HttpDate(now)});
  request.headers.push_back({"x-ms-version", kVersion});
  std::visit([&](const auto& one) { Prove(request, one); }, proof);
}

}  // namespace parallelrun::store::azure_blob
