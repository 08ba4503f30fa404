#include "base/http/target.h"

#include <algorithm>
#include <utility>

#include "base/escape.h"

namespace parallelrun {
namespace {

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Cuts `text` at the first `separator` and returns the part before it.
std::string_view Cut(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view front = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return front;
}

}  // namespace

std::optional<std::string> PercentDecode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = HexValue(text[i + 1]);
    const int low = HexValue(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

std::string PercentEncode(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      encoded.push_back(c);
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return encoded;
}

std::string PercentEncodeSegments(std::string_view path) {
  std::string encoded;
  while (true) {
    const std::string_view segment = path.substr(0, path.find('/'));
    encoded += PercentEncode(segment);
    if (segment.size() == path.size()) return encoded;
    encoded += '/';
    path.remove_prefix(segment.size() + 1);
  }
}

std::optional<std::string> FormDecode(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return PercentDecode(spaced);
}

std::optional<std::string> QueryParameter(std::string_view query, std::string_view name) {
  while (!query.empty()) {
    std::string_view value = Cut(query, '&');
    if (FormDecode(Cut(value, '=')) == name) return FormDecode(value);
  }
  return std::nullopt;
}

Result<std::vector<std::string>> PathSegments(std::string_view path) {
  const auto refuse = [path](const char* why) {
    return Error{Code::kInvalid, "path " + Printable(path, kShownShort) + ": " + why};
  };
  if (path.empty() || path[0] != '/') return refuse("it must start with /");
  std::vector<std::string> segments;
  std::string_view rest = path.substr(1);
  bool more = !rest.empty();
  while (more) {
    more = rest.find('/') != std::string_view::npos;
    std::optional<std::string> segment = PercentDecode(Cut(rest, '/'));
    if (!segment) return refuse("a % must be followed by two hex digits");
    if (segment->empty()) return refuse("a segment is empty");
    if (*segment == "." || *segment == "..") return refuse("\".\" and \"..\" are not allowed");
    if (segment->find('\0') != std::string::npos || segment->find('/') != std::string::npos) {
      return refuse("a segment holds an encoded / or NUL");
    }
    segments.push_back(std::move(*segment));
  }
  return segments;
}

}  // namespace parallelrun
