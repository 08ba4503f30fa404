// `parallelrun compare`: how the rows of two runs differ, mini-batch by mini-batch.
#pragma once

#include <string>

namespace parallelrun::cli {

struct CompareRequest {
  std::string a;  // output folder, output file or state folder of a run
  std::string b;
  bool json = false;
};

// Returns the exit status, as that of diff: 0 the same, 1 different, 2 they cannot be compared.
int CompareOutputs(const CompareRequest& request);

}  // namespace parallelrun::cli
