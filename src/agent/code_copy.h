// The private working directory of a node's worker processes: a writable copy of the code root,
// with `logs` (a folder) and `outputs` (a link to the output folder) in it. Blocking; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace parallelrun::agent {

struct CodeCopyLimits {
  uint64_t bytes = uint64_t{256} << 20;
  uint64_t files = 20'000;
};

// Makes `work_folder` (it must not exist, or be empty) and copies regular files, folders and
// symbolic links of `code_folder` into it: links stay links, and one that leads out of the code
// root leads to the same place. Left out: `.git`, `__pycache__`, `logs` and `outputs` at the top,
// `work_folder` itself, and whatever is no file. kInvalid when the code is above the limits.
// Of a mounted ConfigMap the keys are copied as plain files; where the only entry is a
// `code.tar.gz`, its content is (code_archive.h).
Status CopyCode(const std::string& code_folder, const std::string& work_folder,
                const CodeCopyLimits& limits = {});

// Makes `outputs` a link to `output_folder`, and the folder if it is missing.
Status LinkOutputs(const std::string& work_folder, const std::string& output_folder);

}  // namespace parallelrun::agent
