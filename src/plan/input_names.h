// Which files an input means, by their names alone, and which of them an input before it means too.
// One with a manifest means whatever that names. Pure; immutable and thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/glob.h"
#include "plan/planner.h"

namespace parallelrun::plan {

// Paths are below the root of the input. What is no data by its name is not looked at: IsData().
class InputNames {
 public:
  explicit InputNames(const PlanInput& input);

  // Of a file in a folder that may hold some. What begins with a dot is meant by a pattern that has
  // the dot too, as a shell takes it: `.cache/*.txt`, `**/.env`.
  bool Means(std::string_view path) const;
  bool MayMeanBelow(std::string_view folder) const;
  // Of the one file that is the root, whatever its name begins with.
  bool MeansRoot(std::string_view name) const;

  // Whether the listing of the input has the file at this location (Store::Location).
  bool HasAt(std::string_view location) const;

 private:
  bool Excluded(std::string_view path) const;
  bool HasBelow(std::string_view path) const;

  std::string root_;  // without a slash at its end
  PlanKind kind_;
  bool by_manifest_;
  std::string pattern_text_;
  Glob pattern_;
  std::vector<Glob> exclude_;
};

// Sets PlanInput::before: a file that several inputs mean belongs to the first of them, since its
// rows would be there twice. Only among inputs of one kind and one store: rows of a table, and the
// file itself, are different items. Names are compared as they are written: a link to a folder, or
// a volume that is there under two names, is another place. What a manifest names is known once it
// is read, so that an input with one shares nothing.
void ShareNames(std::vector<PlanInput>& inputs);

}  // namespace parallelrun::plan
