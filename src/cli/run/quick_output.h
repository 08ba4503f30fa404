// What `--output` names: a folder, or one file whose suffix says in which format rows are written,
// here or in a store; and where the logs and the state of such a file lie.
#pragma once

#include <string>

#include "api/data.h"
#include "base/error.h"

namespace parallelrun::cli {

struct QuickOutput {
  // As typed; of a file the one that it lies in; of an output in a store that of logs and state,
  // "" where the job file is to leave them to whoever runs it.
  std::string folder;
  std::string file;  // its name; "": a folder was named
  api::OutputFormat format = api::OutputFormat::kText;
  std::string url = {};  // of the store, with its prefix; "": none
};

// A folder that is there, or ends in a slash, is one whatever it is called. Blocking I/O: looks
// whether it is there. `state` is the word of --state; "": not given. kInvalid: a file of a format
// that is not written, or words that do not go together; says what does.
Result<QuickOutput> LookAtOutput(const std::string& word, const std::string& state = "");

// Beside an output file that the command line has named: the folder of its logs and state.
std::string RunFolderOf(const std::string& output_file);

}  // namespace parallelrun::cli
