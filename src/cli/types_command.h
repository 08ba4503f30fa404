// `parallelrun types`: decides how the columns of delimited text are read, from all of its bytes,
// and prints it. See docs/cli.md.
#pragma once

#include <string>
#include <vector>

namespace parallelrun::cli {

struct TypesRequest {
  std::string target;                  // a file, a folder, or a job file
  std::string delimiter;               // of a file or folder; empty: by the name
  std::vector<std::string> volumes;    // as `parallelrun run` has them, of a job file
  std::vector<std::string> overrides;  // likewise
  bool json = false;                   // for programs
};

// The exit status.
int PrintTypes(const TypesRequest& request);

}  // namespace parallelrun::cli
