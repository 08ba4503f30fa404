// Which names of a store can be files on a node's disk. Pure.
#pragma once

#include <string_view>

namespace parallelrun::store {

// Whether a name can be a path below a folder, and none that leads out of it.
bool IsFilePath(std::string_view name);

}  // namespace parallelrun::store
