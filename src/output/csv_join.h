// The rows of mini-batches as one CSV file (docs/formats.md): each result begins with a line that
// names its columns, a JSON list, and its values go under those of the output by name. Pure; one
// object joins one file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "output/row_format.h"

namespace parallelrun::output {

// The columns that the rows of a result name at their beginning. nullopt: the line that does has
// not ended yet. kCorrupt: no worker has made it.
Result<std::optional<std::vector<std::string>>> NamedColumns(std::string_view rows);

class CsvJoin final : public RowFormat {
 public:
  explicit CsvJoin(std::vector<std::string> columns);

  Status Begin(const Put& put) override;
  // kInvalid: the result has a column that the output lacks; kCorrupt: no worker has made it.
  Status Add(std::string_view rows, bool first, const Put& put) override;
  Status End(const Put& put) override;

 private:
  enum class At { kNames, kAsTheyAre, kByName };

  Status TakeNames(const std::vector<std::string>& names);
  Status Rearrange(std::string_view rows, const Put& put);
  std::string Line() const;

  const std::vector<std::string> columns_;
  At at_ = At::kNames;
  std::string names_;                           // of this result, as far as they have come
  std::string same_names_;                      // the last such line whose rows stay as they are
  std::vector<std::optional<size_t>> sources_;  // for each column, which field of this result's
  std::vector<std::string> fields_;  // of the row that is being read, as they are written
  size_t width_ = 0;                 // fields of this result's rows
  bool quoted_ = false;
};

}  // namespace parallelrun::output
