// The job file for `parallelrun run score.py --input FOLDER --output FOLDER`, which has none; and
// what `parallelrun init` writes. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun {

struct QuickJob {
  std::string script;                  // path of the entry script
  std::string input;                   // folder or file; a .csv or .tsv file is tabular input
  std::string output;                  // folder
  std::string pattern;                 // of input files; empty: all
  std::string mini_batch_size;         // empty: the default
  std::vector<std::string> arguments;  // of the script
  unsigned processes = 1;
};

// A name for the job made of the script's name: lower case letters, digits and dashes.
std::string JobNameOf(const std::string& script);

// YAML text. `absolute` resolves input and output against the current folder.
std::string QuickJobYaml(const QuickJob& job);

}  // namespace parallelrun
