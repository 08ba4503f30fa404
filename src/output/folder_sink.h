// A file of a folder as a sink: the tokens are empty files beside it, which are filled, synced, and
// renamed onto the names of the index and then of the output (docs/ledger.md, "Publishing"). Whose
// tokens are gone publishes nothing.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "output/output_claim.h"
#include "output/sink.h"

namespace parallelrun::output {

// `files` outlives the sink. `token` is the path of the epoch's, which was made when that was
// claimed. `held` is this run's claim to the output, which is looked at once more
// right before the rename.
std::unique_ptr<Sink> MakeFolderSink(Files& files, std::string output_path, std::string token,
                                     HeldOutput held);

}  // namespace parallelrun::output
