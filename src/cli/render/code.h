// A code folder as what a ConfigMap can hold: its files, or one code.tar.gz. The same folder always
// gives the same bytes. The agent unpacks it (agent/code_archive.h).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun {

inline constexpr size_t kMaxConfigMapBytes = 1 << 20;

struct CodeFile {
  std::string path;  // relative, in byte order
  std::string content;
  bool executable = false;
};

// The files below `folder`, with the rules of code_snapshot.h, and without `logs` and `outputs` at
// the top, which every node makes anew. A link stands for the file it leads to; kInvalid when that
// is none, or lies outside, and when there are more than 64 MiB or 20,000 files.
Result<std::vector<CodeFile>> CollectCode(const std::string& folder,
                                          const std::vector<std::string>& leave_out);

// Key to bytes: the files themselves when they are few and flat, else {"code.tar.gz": ...}.
// kInvalid, with the biggest files, when they do not fit.
Result<std::map<std::string, std::string>> PackCode(const std::vector<CodeFile>& files);

}  // namespace parallelrun
