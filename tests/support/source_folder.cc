#include "tests/support/source_folder.h"

namespace parallelrun {

std::string SourceFolder() { return PARALLELRUN_SOURCE_FOLDER "/"; }

}  // namespace parallelrun
