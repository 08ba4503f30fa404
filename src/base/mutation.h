// Deliberate faults, to prove that the simulation can fail: tests/simulation builds the affected
// sources a second time, with these switched on one by one. In every other build they are `false`.
#pragma once

#ifdef PARALLELRUN_MUTATIONS

namespace parallelrun {

enum class Mutation {
  kNone,
  kSealWithoutChain,
  kRenameWithoutToken,
  kListingByCount,
  kOfferWithoutDigest,
  kNoCopyBeyondMark,
  kExpiryWhileCommitting,
  kVerdictBeforeSync,
  kVerdictBeforeShutdown,
  kNoFenceCheck,
  kAcknowledgeBeforeSync,
  kFolderNotSynced,
  kRunMaxTryIgnored,
  kFreshTriesOnRestart,
  kSuspectInCompany,
  kHeldSetNotHalved,
  kSpeculationIgnoresTries,
  kFailedPieceNotCounted,
  kRunOutlivesLease,
  kOverwriteOnRestart,
  kOverwriteKeepsHistory,
  kNoLookForNewer,
  kPublishUnchecked,
  kClaimOfAnybody,
};
extern Mutation active_mutation;

}  // namespace parallelrun

#define PARALLELRUN_MUTATED(name) (::parallelrun::active_mutation == ::parallelrun::Mutation::name)
#else
#define PARALLELRUN_MUTATED(name) false
#endif
