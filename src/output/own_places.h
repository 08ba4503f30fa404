// What lies in the folder of a script's own results (SummaryOnly) and is none of them. Pure.
#pragma once

#include <string>
#include <vector>

namespace parallelrun::output {

// Absolute paths.
struct OwnPlaces {
  std::vector<std::string> folders;  // of the job, with all that lies in them
  std::vector<std::string> made;     // what the job makes before it begins: counts by what is in it
};

// Of a path relative to the output folder: whether the job or the file system has put it there.
// What lies deeper in such a folder is so, too.
bool IsOwn(const OwnPlaces& own, const std::string& output_folder, const std::string& name);

}  // namespace parallelrun::output
