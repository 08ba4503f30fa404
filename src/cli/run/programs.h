// The programs and the Python package that a local run starts. They lie beside this program.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun::cli {

struct Programs {
  // What starts the programs of a bundle (script/bundle), each with its path behind it; empty where
  // they start by themselves.
  std::vector<std::string> loader;
  std::string coordinator;
  std::string agent;
  std::string python_package;  // folder

  // The words that start `program`, one of those above, with `arguments`.
  std::vector<std::string> Command(const std::string& program,
                                   const std::vector<std::string>& arguments) const;
};

// kNotFound when one of them is missing.
Result<Programs> FindPrograms();

// The same around `executable`, which is what the kernel started: this program, or the bundle's
// loader.
Result<Programs> ProgramsAround(const std::string& executable);

}  // namespace parallelrun::cli
