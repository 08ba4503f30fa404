// How an epoch is claimed of a ledger in a store (docs/ledger.md, "A ledger in a store"): which
// question comes next, and what its answer means. It asks nobody itself. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ledger/chain_history.h"
#include "ledger/link_put.h"

namespace parallelrun::ledger {

struct ChainOptions {
  std::string owner;        // job and uid: whose chain it is
  uint64_t nonce = 0;       // random: of this epoch
  uint64_t new_run_id = 0;  // random: used where there is no link yet
  uint32_t seen_epoch = 0;  // that somebody has seen: a chain that ends below it is damaged
};

class ChainClaim {
 public:
  enum class Do : uint8_t {
    kList,      // which numbers are there
    kRead,      // the link number()
    kCreate,    // bytes() as link number(), where there is none
    kAnnounce,  // that epoch number() is wanted
    kClaimed,   // history() has the claim
    kFailed,    // error() says why
  };

  ChainClaim(ChainOptions options, ChainHistory::Locate locate, Ledger::Visitor visit,
             ChainHistory::Keep keep);

  Do next() const;
  uint64_t number() const;  // of kRead, kCreate and kAnnounce
  // Of kRead: up to this one all are wanted next, in their order. Who reads ahead reads these.
  uint64_t up_to() const;
  const std::string& bytes() const { return link_; }  // of kCreate
  const Error& error() const { return *error_; }

  // The answers. Of a list: in any order; the newest may lack.
  void OnListed(std::vector<uint64_t> numbers);
  // Nothing: nothing has that number.
  void OnRead(const std::optional<std::string>& there);
  void OnCreated(LinkPut::Answer answer);
  void OnAnnounced();

  const ChainHistory& history() const { return history_; }

 private:
  enum class Phase : uint8_t {
    kListing,
    kMissing,     // looks for those that the list lacks
    kNewest,      // reads the last one, which says where the history begins
    kOwner,       // reads the first one of all, which says whose chain it is
    kReplaying,   // reads the history
    kBeyond,      // the list lacks an epoch that was seen: looks whether it was only late
    kAnnouncing,  // has lost some numbers to the epoch that is at work
    kCreating,    // puts the claim
    kProbing,     // puts it once more: that must fail
    kOver,
  };

  void Fail(Error error);
  void OnNewest(const std::string& bytes);
  void ReadOn();
  void TakeNext(const std::string& bytes);
  void PutClaim();

  const ChainOptions options_;
  const ChainHistory::Locate locate_;
  ChainHistory history_;
  Phase phase_ = Phase::kListing;
  std::vector<uint64_t> missing_;  // in front of the highest, last one first
  uint64_t last_ = 0;              // the highest that is known
  uint64_t reads_ = 0;             // the next one, of kReplaying
  std::string link_;               // the claim
  LinkPut put_;
  int tries_ = 0;
  uint32_t announced_ = 0;  // epoch
  std::optional<Error> error_;
};

}  // namespace parallelrun::ledger
