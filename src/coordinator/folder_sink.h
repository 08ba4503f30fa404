// A file of a folder as a sink: the token is an empty file beside it, which is filled, synced, and
// renamed onto the output's name (docs/ledger.md, "Publishing"). Whose token is gone publishes
// nothing.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "coordinator/output_claim.h"
#include "coordinator/sink.h"

namespace parallelrun {

// `files` outlives the sink. `held` is this run's claim to the output, which is looked at once more
// right before the rename.
std::unique_ptr<Sink> MakeFolderSink(Files& files, std::string output_path, HeldOutput held);

}  // namespace parallelrun
