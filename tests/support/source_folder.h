// Where this project's files lie, for tests that read them.
#pragma once

#include <string>

namespace parallelrun {

// The absolute path of the project's root, with a slash at its end.
std::string SourceFolder();

}  // namespace parallelrun
