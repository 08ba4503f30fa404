// What two runs have made of the same mini-batches, from their ledgers, which are read and never
// touched; a coordinator may be at work meanwhile. Memory: 40 bytes a mini-batch, and of the rows
// what is asked for. Blocking I/O.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "job/ids.h"

namespace parallelrun::cli {

struct BatchRows {
  job::BatchId id = 0;
  uint64_t digest = 0;  // of its rows; 0: there is no result
  uint64_t rows = 0;
  bool operator==(const BatchRows&) const = default;
};

// By what a mini-batch is made of: a digest of its input's index and its items, without the folder
// that they lie in. Runs over the same files with the same mini-batch size have the same keys.
using RowsOfRun = std::map<uint64_t, BatchRows>;
Result<RowsOfRun> ReadRows(const Files& files, const std::string& state_folder);

// Texts of some mini-batches of a run.
struct BatchTexts {
  std::string first_item;         // of its first file the path, as it was planned
  std::vector<std::string> rows;  // lines without their ends
  bool cut = false;               // there were more bytes of rows than are kept
};
std::map<job::BatchId, BatchTexts> ReadTexts(const Files& files, const std::string& state_folder,
                                             const std::set<job::BatchId>& wanted);

// How the runs A and B differ. Pure.
struct RunDifferences {
  uint64_t same = 0;
  std::vector<std::pair<BatchRows, BatchRows>> changed;  // of A and B; in the order of A
  std::vector<BatchRows> only_a;                         // mini-batches of other items
  std::vector<BatchRows> only_b;
};
RunDifferences CompareRuns(const RowsOfRun& a, const RowsOfRun& b);

// Rows of one mini-batch, line by line at their places. Pure.
struct RowChanges {
  uint64_t changed = 0;
  uint64_t added = 0;
  uint64_t removed = 0;
  std::string first_a;  // the first row that differs, in A; empty: A has none there
  std::string first_b;
};
RowChanges CompareRows(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace parallelrun::cli
