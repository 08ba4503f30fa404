// The links of a ledger as objects of a store: "chain/00000001", …; and "wanted/00000002",
// …: the epochs that somebody wants to claim.
#pragma once

#include <memory>

#include "ledger/link_store.h"
#include "store/store.h"
#include "store/write_store.h"

namespace parallelrun::ledger {

// `listed` is the same place as `store`, to be listed: the folder of one job's state. Neither knows
// of what else is in it.
std::unique_ptr<LinkStore> MakeStoredLinks(std::unique_ptr<store::WriteStore> store,
                                           std::unique_ptr<store::Store> listed);

}  // namespace parallelrun::ledger
