// Decides the types of the columns of an input of delimited text, from all of its bytes or from a
// sample that names and bytes determine (sample.h), so that every slice of it is read alike.
// Blocking I/O, by several threads at once where there are more processors; thread-safe. Memory: of
// each of these that of SampleReader, and for each of twice as many files what was seen of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "plan/columns/types_json.h"
#include "plan/planner.h"

namespace parallelrun::plan {

// How much is read, at most, before a sample has to do.
struct TypesLimit {
  uint64_t bytes = 0;
  size_t names = 0;
  // A row, or a quote that is open at the end, which would end or fail a run is an error: who asks
  // for all of it wants to hear that it can be read.
  bool check_rows = false;
  // How many read at once: what is decided is the same. 0: as many as the processors allow.
  size_t threads = 0;
};
extern const TypesLimit kSampleLimit;
extern const TypesLimit kWholeInput;

// nullopt for an input without a table. Errors name input and file: those of Planner::Next, and
// kInvalid for a file with other columns, a written type of a column that is not there, and, where
// rows are checked, the first bad one.
Result<std::optional<TypedTable>> DecideTypes(const PlanInput& input, store::Store& store,
                                              const TypesLimit& limit = kSampleLimit);

}  // namespace parallelrun::plan
