#include "api/problem.h"

#include <algorithm>

#include "base/escape.h"

namespace parallelrun::api {

bool HasErrors(const Problems& problems) {
  return std::any_of(problems.begin(), problems.end(), [](const Problem& problem) {
    return problem.severity == Problem::Severity::kError;
  });
}

std::string FormatProblem(const Problem& problem, std::string_view file) {
  std::string text;
  if (!problem.flag.empty()) {
    text += problem.flag + ": ";
  } else if (!file.empty()) {
    text += file;
    if (problem.line > 0) text += ":" + std::to_string(problem.line);
    text += ": ";
  }
  if (problem.severity == Problem::Severity::kWarning) text += "warning: ";
  if (!problem.field.empty()) text += problem.field + ": ";
  text += problem.what;
  if (!problem.mend.empty()) text += ": " + problem.mend;
  // What stands in a file that somebody sent must not reach the terminal as a control sequence.
  constexpr size_t kMaxShown = 4096;
  return Printable(text, kMaxShown);
}

}  // namespace parallelrun::api
