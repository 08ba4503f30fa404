// Keeps the coordinator of an old pod from claiming the job again: a kubelet that cannot hear that
// its pod was replaced starts the container anew each time that it ends as superseded, and each
// start would supersede the newer pod's.
#pragma once

#include <string>

#include "base/error.h"
#include "ledger/state_notes.h"

namespace parallelrun::coordinator {

// Of this machine; in a pod it is the pod's name.
std::string HostName();

// kStale when a newer pod of the same job has started on this state; else notes this one beside it.
// `host` is the pod's name; for any other host nothing is done.
Status EnterAsNewestPod(ledger::StateNotes& notes, const std::string& resource_uid,
                        const std::string& host);

}  // namespace parallelrun::coordinator
