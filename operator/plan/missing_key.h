// A Secret or ConfigMap that is there and lacks a key, which the kubelet alone sees: the operator
// reads of Secrets no more than that they are there. Pure.
#pragma once

#include <string>

#include "api/job.h"

namespace parallelrun::operators {

// What the kubelet says of a volume that it cannot mount ("references non-existent secret key"), in
// the words of the job: the object, the key, the field that names it, and the cure. "" if it is
// about something else.
std::string MissingKey(const api::JobSpec& spec, const std::string& message);

}  // namespace parallelrun::operators
