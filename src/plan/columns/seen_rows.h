// What the rows of a block hold, or of several that stand one behind the other: of these it is the
// same whether one reads them in turn, or several read one each and what they saw is appended in
// the order of the table. Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/columns/column_types.h"

namespace parallelrun::plan {

// How rows of a table, that were looked at, differ from its header.
struct RowCounts {
  uint64_t rows = 0;
  uint64_t wide = 0;  // more fields
  uint64_t few = 0;   // fewer of them
};

struct BadRow {
  FieldPlace place;
  std::string what;  // it is or has, for people
};

struct SeenRows {
  std::vector<SeenColumn> columns;
  RowCounts counts;
  std::optional<BadRow> bad_row;  // the first of those that are wanted
  bool all = true;                // none of them was left out

  // Adds what stands behind. `order`: which column of this each of `later` is; they are the same
  // ones without.
  void Append(const SeenRows& later, const std::vector<size_t>& order);
  void Append(const SeenRows& later);
};

}  // namespace parallelrun::plan
