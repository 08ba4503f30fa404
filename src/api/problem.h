// What is wrong with a job file, and how to mend it. Plain values; not an Error, since all
// problems of a file are reported at once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::api {

struct Problem {
  enum class Severity { kError, kWarning };

  Severity severity = Severity::kError;
  std::string field = {};  // "spec.inputs[0].files.pattern"; empty: the file as a whole
  std::string what = {};   // "\"10Mi\" is not a size"
  std::string mend = {};   // "write 10MB (powers of 1024)"; may be empty
  int line = 0;            // 1-based; 0: not from a file
  int column = 0;          // 1-based
  std::string flag = {};   // the command line's flag that the value came from, or empty
};
using Problems = std::vector<Problem>;

bool HasErrors(const Problems& problems);

// One line that is safe to print, as
// `job.yaml:12: spec.miniBatchSize: "10Mi" is not a size: write 10MB (powers of 1024)`. A value
// from a flag has the flag in place of file and line; a value from neither has only the field.
std::string FormatProblem(const Problem& problem, std::string_view file);

}  // namespace parallelrun::api
