#include "base/http/client/url.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace parallelrun {
namespace {

constexpr uint16_t kHttp = 80;
constexpr uint16_t kHttps = 443;

bool IsHostByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == '_';
}

bool IsAddressByte(char c) { return IsHostByte(c) || c == ':' || c == '%'; }

bool IsPathByte(char c) { return c > 0x20 && c < 0x7f && c != '?' && c != '#'; }

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// 0: not a port.
uint16_t ParsePort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() ? port : uint16_t{0};
}

}  // namespace

std::string HttpUrl::HostHeader() const {
  const std::string shown = host.find(':') == std::string::npos ? host : "[" + host + "]";
  return port == (tls ? kHttps : kHttp) ? shown : fmt::format("{}:{}", shown, port);
}

Result<HttpUrl> ParseHttpUrl(const std::string& text) {
  const Error wrong{Code::kInvalid, "write http://host:port or https://host:port"};
  HttpUrl url;
  std::string_view rest = text;
  url.tls = rest.starts_with("https://");
  if (!TakePrefix(rest, "https://") && !TakePrefix(rest, "http://")) return wrong;
  std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view prefix = rest.substr(authority.size());
  const bool brackets = TakePrefix(authority, "[");
  const size_t end =
      brackets ? authority.find(']') : std::min(authority.find(':'), authority.size());
  if (end == std::string_view::npos) return wrong;
  url.host = std::string(authority.substr(0, end));
  authority.remove_prefix(brackets ? end + 1 : end);
  if (url.host.empty() ||
      !std::all_of(url.host.begin(), url.host.end(), brackets ? IsAddressByte : IsHostByte)) {
    return wrong;
  }
  url.port = url.tls ? kHttps : kHttp;
  if (!authority.empty())
    url.port = TakePrefix(authority, ":") ? ParsePort(authority) : uint16_t{0};
  if (url.port == 0) return wrong;
  if (!std::all_of(prefix.begin(), prefix.end(), IsPathByte)) return wrong;
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  url.prefix = std::string(prefix);
  return url;
}

}  // namespace parallelrun
