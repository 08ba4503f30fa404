#include "api/text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>

namespace parallelrun::api {
namespace {

bool IsLetterOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Bytes of the UTF-8 character at the start of `text`; 0 if there is none.
size_t CharacterSize(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Too long a form, surrogates, and beyond U+10FFFF.
  if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0)) return 0;
  if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90)) return 0;
  return size;
}

// The value of "\uXXXX" at `at`, or -1.
int EscapeAt(std::string_view text, size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int value = 0;
  const char* const end = text.data() + at + 6;
  const auto [stop, error] = std::from_chars(text.data() + at + 2, end, value, 16);
  return error == std::errc() && stop == end && text[at + 2] != '-' ? value : -1;
}

void AppendUtf8(std::string& out, uint32_t c) {
  out += static_cast<char>(0xF0 | (c >> 18));
  out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
  out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
  out += static_cast<char>(0x80 | (c & 0x3F));
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = CharacterSize(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

bool IsDelimiter(std::string_view text) {
  using std::string_view_literals::operator""sv;
  return !text.empty() && text.size() <= kMostDelimiter &&
         text.find_first_of("\"\n\r\0"sv) == std::string_view::npos && IsUtf8(text);
}

size_t Utf8Length(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string JoinSurrogates(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] != '\\') {
      out += text[at++];
      continue;
    }
    const int high = EscapeAt(text, at);
    const int low = high >= 0xD800 && high < 0xDC00 ? EscapeAt(text, at + 6) : -1;
    if (low >= 0xDC00 && low < 0xE000) {
      AppendUtf8(out, 0x10000U + ((static_cast<uint32_t>(high) - 0xD800U) << 10) +
                          (static_cast<uint32_t>(low) - 0xDC00U));
      at += 12;
      continue;
    }
    // An escaped backslash must not start an escape with what follows it.
    out += text.substr(at, 2);
    at += 2;
  }
  return out;
}

std::string Squashed(std::string_view name) {
  std::string squashed;
  for (const char c : name) {
    if (c == '_' || c == '-' || c == ' ') continue;
    squashed += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return squashed;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::string_view SchemeOf(std::string_view text) {
  const size_t end = text.find("://");
  if (end == std::string_view::npos || end < 2) return "";
  const std::string_view scheme = text.substr(0, end);
  const bool letter = std::isalpha(static_cast<unsigned char>(scheme.front())) != 0;
  const bool known = std::all_of(scheme.begin(), scheme.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.';
  });
  return letter && known ? scheme : "";
}

size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

std::string ClosestName(std::string_view name, const std::vector<std::string>& known) {
  const std::string squashed = Squashed(name);
  if (squashed.size() > 64) return "";
  std::string best;
  size_t best_distance = squashed.size() / 4 + 2;  // the first that is too far
  if (squashed.size() <= 3) best_distance = 2;
  for (const std::string& candidate : known) {
    const std::string other = Squashed(candidate);
    size_t distance = EditDistance(squashed, other);
    // "runInvocationTimeout" for "runInvocationTimeoutSeconds".
    if (squashed.size() >= 4 && (other.starts_with(squashed) || squashed.starts_with(other))) {
      distance = std::min<size_t>(distance, 1);
    }
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string OrList(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

bool IsDnsLabel(std::string_view name) {
  if (name.empty() || name.size() > 63 || name.front() == '-' || name.back() == '-') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

bool IsLabelValue(std::string_view text) {
  if (text.empty()) return true;
  if (text.size() > 63 || !IsLetterOrDigit(text.front()) || !IsLetterOrDigit(text.back())) {
    return false;
  }
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.'; });
}

bool IsLabelName(std::string_view name) {
  const size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    constexpr size_t kMostDomain = 253;
    if (slash > kMostDomain) return false;
    for (size_t at = 0; at <= slash;) {
      const size_t end = std::min(name.find('.', at), slash);
      if (!IsDnsLabel(name.substr(at, end - at))) return false;
      at = end + 1;
    }
    name.remove_prefix(slash + 1);
  }
  return !name.empty() && IsLabelValue(name);
}

}  // namespace parallelrun::api
