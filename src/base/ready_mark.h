// That a program in a pod is ready, for whoever looks at the pod: a file, for which a probe of its
// container waits. One that is asked again and again until it is answered with yes would leave a
// Warning event for each no; one that waits leaves none. Any thread.
#pragma once

#include <string>

#include "base/time.h"

namespace parallelrun {

// How often AwaitReadyMark looks.
inline constexpr Duration kLookForMark = milliseconds(50);

// False: it could not be made now, as where there is no room.
bool MakeReadyMark(const std::string& path);

// Returns once the file is there; who does not want to wait any longer ends the process.
void AwaitReadyMark(const std::string& path);

}  // namespace parallelrun
