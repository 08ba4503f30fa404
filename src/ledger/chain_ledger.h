// A ledger in a store: a chain of links, each made once, on the condition that none has its number
// (docs/ledger.md, "A ledger in a store"). ChainClaim and LinkPut decide; this asks the store, and
// keeps what was read and written at hand. As Ledger has it, but that it keeps no token.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "ledger/chain_claim.h"
#include "ledger/ledger.h"
#include "ledger/link_pace.h"
#include "ledger/link_store.h"

namespace parallelrun::ledger {

struct ChainLedgerOptions {
  ChainOptions chain;
  std::string copy_path;  // of the copy on this machine, absolute; "": none is kept
  uint64_t copy_most = uint64_t{1} << 30;  // bytes of it
  LinkPace::Limits pace{};
};

// Claims the next epoch. kExists: the chain is another job's; kCorrupt names the link; kInvalid:
// the store ignores conditions, or holds a format that is not known; kStale: the run was begun anew
// meanwhile. `links` and `files` outlive the ledger.
Result<std::unique_ptr<Ledger>> ClaimChain(LinkStore& links, Files& files,
                                           const ChainLedgerOptions& options,
                                           const Ledger::Visitor& visit);

// Replays what the next epoch would count, without claiming one; returns the run id. kNotFound when
// there is no link.
Result<uint64_t> InspectChain(LinkStore& links, const Ledger::Visitor& visit);

}  // namespace parallelrun::ledger
