// Whether there is room where a node writes: the copy of its code, its logs, and what its script
// writes below its working directory. Thread-safe.
#pragma once

#include <string>

namespace parallelrun::agent {

// Why nothing should be begun that writes into `folder`, for people; "" while there is room, and
// where that cannot be told.
std::string WantOfRoom(const std::string& folder);

}  // namespace parallelrun::agent
