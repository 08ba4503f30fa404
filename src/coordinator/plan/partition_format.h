// Values that stand in the paths of an input's files: spec.inputs[].partitionFormat, as in
// {user}/{season}/{genres}.wav or {Store}/{Brand}/{file_name}.{extension}. The whole path below the
// input's root must match. `{name}` is one character or more, none of them '/'; where several ways
// match, an earlier name gets as much as it can. `{name:yyyy/MM/dd}` is a date as written: the
// letters y, M, d, H, m and s are a digit each, all else is itself. Time is at most (format ×
// path²). Immutable, thread-safe.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun {

class PartitionFormat {
 public:
  // kInvalid for braces that are not closed, a name twice, and two names with nothing in between.
  // A '/' at the front is ignored.
  static Result<PartitionFormat> Parse(std::string_view format);

  // The names in their order.
  const std::vector<std::string>& names() const { return names_; }
  // The value of each name, or nullopt when the path does not match.
  std::optional<std::vector<std::string_view>> Match(std::string_view path) const;

 private:
  struct Part {
    enum class Kind { kLiteral, kName, kDate };
    Kind kind;
    std::string text;  // literal, or the date's letters
  };
  struct Attempt;

  std::vector<Part> parts_;
  std::vector<std::string> names_;
};

// The context of a mini-batch's files (docs/worker-protocol.md): a JSON object of names and values.
class PathContext {
 public:
  // An empty `format` gives no context. The object has `keys` in their order, or, when there are
  // none, all names of the format. kInvalid for a bad format and a key that is not in it.
  static Result<PathContext> Make(const std::string& format, const std::vector<std::string>& keys);

  // The JSON, equal for equal values; empty without a format. kInvalid names file and format when
  // they do not match.
  Result<std::string> Of(std::string_view path) const;

 private:
  std::string text_;
  std::optional<PartitionFormat> format_;
  std::vector<size_t> picked_;  // of the format's names
};

}  // namespace parallelrun
