// Small texts beside a ledger as objects of a store.
#pragma once

#include <memory>

#include "ledger/state_notes.h"
#include "store/store.h"
#include "store/write_store.h"

namespace parallelrun::ledger {

// `listed` is the same place as `store`, to be listed: the folder of one job's state.
std::unique_ptr<StateNotes> MakeStoredNotes(std::unique_ptr<store::WriteStore> store,
                                            std::unique_ptr<store::Store> listed);

}  // namespace parallelrun::ledger
