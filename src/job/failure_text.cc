#include "job/failure_text.h"

#include <algorithm>
#include <iterator>

#include "base/escape.h"

namespace parallelrun::job {
namespace {

// Whether it ends in ":31".
bool IsLocation(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
  return std::all_of(text.begin() + static_cast<std::ptrdiff_t>(colon) + 1, text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

// Where the parenthesis begins that ends the text: names of files hold parentheses too.
size_t LastParenthesis(std::string_view text) {
  if (!text.ends_with(')')) return std::string_view::npos;
  int depth = 0;
  for (size_t at = text.size(); at-- > 0;) {
    if (text[at] == ')') ++depth;
    if (text[at] == '(' && --depth == 0) return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::string JoinFailure(const FailureParts& parts, size_t limit) {
  const std::string front = parts.type.empty() ? "" : parts.type + ": ";
  const std::string place = parts.location.empty() ? "" : " (" + parts.location + ")";
  const size_t fixed = std::min(limit, front.size() + place.size());
  return front + Printable(parts.message, limit - fixed) + place;
}

FailureParts SplitFailure(std::string_view kind, std::string_view text) {
  FailureParts parts;
  const size_t place = LastParenthesis(text);
  if (place != std::string_view::npos && place > 0 && text[place - 1] == ' ') {
    const std::string_view inside = text.substr(place + 1, text.size() - place - 2);
    if (IsLocation(inside)) {
      parts.location = inside;
      text = text.substr(0, place - 1);
    }
  }
  const size_t colon = text.find(": ");
  if ((kind == "Exception" || kind == "InitFailed") && colon != std::string_view::npos &&
      text.substr(0, colon).find(' ') == std::string_view::npos) {
    parts.type = text.substr(0, colon);
    text = text.substr(colon + 2);
  }
  parts.message = text;
  return parts;
}

bool OfProgram(std::string_view kind, std::string_view text) {
  if (kind == "BadReturn") return true;
  if (OfDebugger(kind, text)) return true;
  const std::string type = SplitFailure(kind, text).type;
  constexpr std::string_view kTypes[] = {"NameError",          "UnboundLocalError", "ImportError",
                                         "SyntaxError",        "IndentationError",  "TabError",
                                         "ModuleNotFoundError"};
  return std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes);
}

bool OfDebugger(std::string_view kind, std::string_view text) {
  return SplitFailure(kind, text).type == "bdb.BdbQuit";
}

}  // namespace parallelrun::job
