// What lies in the folder of a script's own results (SummaryOnly) and is none of them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::output {

// Absolute paths.
struct OwnPlaces {
  std::vector<std::string> folders;  // of the job, with all that lies in them
  std::vector<std::string> made;     // what the job makes before it begins: counts by what is in it
};

// With SummaryOnly and side files that are staged the list of these is the output.
inline constexpr char kSideListName[] = "_files.jsonl";

// The folder, in that of the output, of what a run's attempts have written where side files are
// staged.
std::string StagingNameOf(uint64_t run_id);
// Whether something in an output folder has such a name.
bool IsStagingName(std::string_view name);

// Of a path relative to the output folder: whether the job or the file system has put it there.
// What lies deeper in such a folder is so, too.
bool IsOwn(const OwnPlaces& own, const std::string& output_folder, const std::string& name);

}  // namespace parallelrun::output
