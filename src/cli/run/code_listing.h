// What of a code folder is code: for the copy that a local run makes, and for the ConfigMap of a
// cluster's.
//
// Never code: .git, __pycache__, virtual environments, the folders `logs` and `outputs` at the top,
// what earlier runs have left (earlier_runs.h), and the job's own inputs and outputs. Left out as
// well: what .amlignore says, or .gitignore where a folder has no .amlignore; and what cannot be
// read. The entry script always stays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun::cli {

struct CodeFolder {
  std::string path;                    // absolute
  std::string script;                  // the entry script, below it; "": unknown
  std::vector<std::string> leave_out;  // absolute files and folders
};

struct CodeEntry {
  enum class Kind { kFolder, kFile, kLink };
  std::string path;  // relative
  Kind kind = Kind::kFile;
  uint64_t size = 0;  // of a file
  bool operator==(const CodeEntry&) const = default;
};

struct CodeListing {
  std::vector<CodeEntry> entries;  // depth first, a folder before what it holds, in byte order
  uint64_t bytes = 0;
  uint64_t files = 0;              // and links
  bool more = false;               // it ended at 200,000 entries
  std::vector<std::string> notes;  // lines for the user: what was left out that may be missed
};

// kPermission when the folder itself cannot be read.
Result<CodeListing> ListCode(const CodeFolder& folder);

// Whether a file is by its name what somebody has said, as `run.log` or `nohup.out`: another one of
// these is no other code. They are copied: a script may read one.
bool IsLog(std::string_view path);

// A line that names the folders `outputs` and `logs` of the code, where they hold something: what a
// training has left in ./outputs would not be found there, and nobody would know why. "": none.
std::string OwnFolders(const CodeFolder& folder);

// "data (1.1 GB, 40,000 files), model.bin (90.0 MB)": what takes most, by its name at the top.
std::string Biggest(const CodeListing& listing);

// The folder that takes most of those that hold no Python file, below none of the same kind, and
// are not on the way to `script`; "": there is none.
std::string BiggestOfData(const CodeListing& listing, const std::string& script);

}  // namespace parallelrun::cli
