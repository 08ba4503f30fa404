// Opening below a folder in which others may write too: what lies there is hostile.
#pragma once

#include <string>

#include "base/error.h"
#include "base/fd.h"

namespace parallelrun {

// Opens `name`, relative to the open folder `folder`, without ever following a link or leaving the
// folder; `flags` and `mode` as for open(2), with no wait for the other end of a pipe. Negative,
// with errno, when it fails.
int OpenBelow(int folder, const std::string& name, int flags, unsigned mode);

// The same where the system has no openat2 (Linux 5.6), as some sandboxes: a call for each part of
// the name. ".." is refused wherever it stands.
int OpenBelowByWalking(int folder, const std::string& name, int flags, unsigned mode);

// The error of a call that failed with `number` below such a folder: kPermission where a link is in
// the way. `what` names the call and its object.
Error ErrorBelow(int number, const std::string& what);

}  // namespace parallelrun
