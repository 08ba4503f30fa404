// Side files that were published, beside what their list says of them: with SummaryOnly the list is
// the output, else it stands in the output's index (docs/formats.md). Blocking I/O; thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "store/store.h"

namespace parallelrun::output {

struct ListedFiles {
  uint64_t files = 0;  // that the list names, and their bytes
  uint64_t bytes = 0;
  uint64_t damaged = 0;
  std::string first;  // of these, in words: "a.txt is not there"
};

// Reads all of them. `output_path` is that of the output. kInvalid: the list cannot be understood.
Result<ListedFiles> CheckListedFiles(const Files& files, const std::string& output_path);

// The same of an output in a store: its name there, beside which the files stand.
Result<ListedFiles> CheckListedFiles(store::Store& store, const std::string& output_name);

// Removes those that the list of an output names and `keeps` does not, where they still are what
// the list says, and the folders that are empty then; how many. Without a list nothing is removed.
// What cannot be removed is told in the log, and stays.
Result<uint64_t> RemoveListedFiles(const Files& files, const std::string& output_path,
                                   const std::function<bool(const std::string& name)>& keeps);

}  // namespace parallelrun::output
