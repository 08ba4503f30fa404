// The columns of a Parquet output: named by the job or by the first mini-batch that has rows, each
// of the type that holds the values of all mini-batches without loss. When a mini-batch ended does
// not matter. Pure; one object decides for one output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/ids.h"
#include "parquet/column.h"

namespace parallelrun::output {

class OutputColumns {
 public:
  // `named`: the columns that the job says; empty: those of the first mini-batch that is added.
  explicit OutputColumns(const std::vector<std::string>& named);

  // The columns of a result, in the order of the input. kInvalid: it has one that the output lacks,
  // or values of a type that goes with those of no mini-batch before it; the message begins with
  // what it has.
  Status Add(job::BatchId id, const std::vector<parquet::Column>& columns);
  std::vector<parquet::Column> All() const;

 private:
  struct Known {
    parquet::Column column;
    job::BatchId from = 0;  // whose type that is
  };

  Known* Find(size_t at, const std::string& name);

  std::vector<Known> known_;
  bool named_ = false;
  // As the last ones were, most are.
  std::vector<parquet::Column> same_;
};

}  // namespace parallelrun::output
