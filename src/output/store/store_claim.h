// Which run may publish to an output in a store: an object beside it, made on the condition that
// there is none (docs/ledger.md, "Claiming an output in a store"). Blocking I/O.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "output/output_claim.h"
#include "store/write_store.h"

namespace parallelrun::output {

// Takes the output `name`, also over from an owner that is over, and makes sure that the store
// keeps conditions, without which two runs could spoil each other's output. `files` see the state
// folders of others. `options` name no folder. HeldOutput's path is the claim's name in the store.
// Errors: those of ClaimOutput; kInvalid: the store ignores conditions.
Result<HeldOutput> ClaimInStore(store::WriteStore& store, const Files& files,
                                const std::string& name, const ClaimOptions& options);

// kExists when another one has the output by now. A claim that somebody has removed is made again.
Status KeepInStore(store::WriteStore& store, const HeldOutput& held);

// Gives the output back, if it still is held.
Status ReleaseInStore(store::WriteStore& store, const HeldOutput& held);

// Who has claimed the output of that name; nothing where nobody has, or one that no run has
// written.
Result<std::optional<OutputOwner>> OwnerInStore(store::WriteStore& store, const std::string& name);

// Removes the claim if it is of a run in that state folder. For whoever knows that none is at work
// there any more.
Status RemoveClaimInStore(store::WriteStore& store, const Files& files,
                          const std::string& state_folder, const std::string& name);

}  // namespace parallelrun::output
