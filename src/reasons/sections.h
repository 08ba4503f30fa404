// Internal to src/reasons: the entries, as lists by where people meet them.
#pragma once

#include <span>

#include "reasons/entries.h"

namespace parallelrun::reasons {

// job_entries.cc: what a run says, on one machine and on a cluster.
std::span<const Entry> EndsOfAJob();
std::span<const Entry> FailedAttempts();

// cluster_entries.cc: what the operator says.
std::span<const Entry> WhatNodesWaitFor();
std::span<const Entry> EndsOfANode();
std::span<const Entry> OtherConditions();
std::span<const Entry> OtherEvents();

}  // namespace parallelrun::reasons
