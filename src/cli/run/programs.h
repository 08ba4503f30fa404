// The programs and the Python package that a local run starts. They lie beside this program.
#pragma once

#include <string>

#include "base/error.h"

namespace parallelrun {

struct Programs {
  std::string coordinator;
  std::string agent;
  std::string python_package;  // folder
};

// kNotFound when one of them is missing.
Result<Programs> FindPrograms();

}  // namespace parallelrun
