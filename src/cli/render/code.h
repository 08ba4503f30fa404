// A code folder as what a ConfigMap can hold: its files, or one code.tar.gz. The same folder always
// gives the same bytes. The agent unpacks it (agent/code_archive.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/run/code_listing.h"

namespace parallelrun::cli {

inline constexpr size_t kMaxConfigMapBytes = 1 << 20;

struct CodeFile {
  std::string path;  // relative, in byte order
  std::string content;
  bool executable = false;
};

// The files of the code, and notes for the user of what was left out. A link stands for the file it
// leads to; kInvalid when that is none, or lies outside, and when there are more than 64 MiB or
// 20,000 files.
Result<std::vector<CodeFile>> CollectCode(const CodeFolder& folder,
                                          std::vector<std::string>& notes);

// Key to bytes: the files themselves when they are few and flat, else {"code.tar.gz": ...}.
// kInvalid, with the biggest files, when they do not fit.
Result<std::map<std::string, std::string>> PackCode(const std::vector<CodeFile>& files);

}  // namespace parallelrun::cli
