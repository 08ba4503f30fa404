// The host names of a job's pods: `<base>-coordinator-<n>`, `<base>-node-<i>-<n>`. n grows with
// each pod of the job, so that of two pods with one role the one with the higher number counts.
// Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace parallelrun::job {

// n, of a pod with that role ("coordinator", "node-3"); 0 when the host is no such pod.
uint64_t PodNumber(std::string_view host, std::string_view role);

}  // namespace parallelrun::job
