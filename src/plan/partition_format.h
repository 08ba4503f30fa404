// Values that stand in the paths of an input's files: spec.inputs[].partitionFormat, as in
// {user}/{season}/{genres}.wav or {Store}/{Brand}/{file_name}.{extension}. The whole path below the
// input's root must match. `{name}` is one character or more, none of them '/'; where several ways
// match, an earlier name gets as much as it can. `{name:yyyy/MM/dd}` is digits as written: the
// letters y, M, d, H, m and s are a digit each, all else is itself. With yyyy among them it is a
// date. `{}` is as `{name}`, but nobody gets its value. Time is at most (format × path²).
// Immutable, thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun::plan {

class PartitionFormat {
 public:
  // kInvalid for braces that are not closed, a name twice, two names with nothing in between, and a
  // date that is written with other letters than yyyy, MM, dd, HH, mm and ss, each once at most.
  // A '/' at the front is ignored.
  static Result<PartitionFormat> Parse(std::string_view format);

  // The names in their order.
  const std::vector<std::string>& names() const { return names_; }
  // Of each name the letters of its date; empty: it is text.
  const std::vector<std::string>& dates() const { return dates_; }
  // The value of each name, or nullopt when the path does not match.
  std::optional<std::vector<std::string_view>> Match(std::string_view path) const;

 private:
  struct Part {
    enum class Kind { kLiteral, kName, kDate, kAny };
    Kind kind;
    std::string text;  // literal, or the date's letters
  };
  struct Attempt;
  static bool IsText(const Part& part) {
    return part.kind == Part::Kind::kName || part.kind == Part::Kind::kAny;
  }

  std::vector<Part> parts_;
  std::vector<std::string> names_;
  std::vector<std::string> dates_;
};

// "2026-11-23T00:00:00" of a value by the letters of its date; nullopt for a day or time that there
// is not, and for a year that pandas' timestamps do not reach (1678 to 2261).
std::optional<std::string> DateOf(std::string_view letters, std::string_view value);

// The context of a mini-batch's files (docs/worker-protocol.md): a JSON object of names and values.
class PathContext {
 public:
  // An empty `format` gives no context. The object has `keys` in their order, or, when there are
  // none, all names of the format. kInvalid for a bad format and a key that is not in it.
  static Result<PathContext> Make(const std::string& format, const std::vector<std::string>& keys);

  // The JSON, equal for equal values; empty without a format. Dates are as they are written.
  // kInvalid names file and format when they do not match.
  Result<std::string> Of(std::string_view path) const;

  // For the columns of a table, which all names of the format are (docs/worker-protocol.md): JSON
  // of the columns, and of their values for a file for which Of() is no error.
  std::string Columns() const;
  std::string Values(std::string_view path) const;

 private:
  std::string text_;
  std::optional<PartitionFormat> format_;
  std::vector<size_t> picked_;  // of the format's names
};

}  // namespace parallelrun::plan
