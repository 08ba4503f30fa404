// Whether this epoch is the newest, as far as was seen: without a look a moment ago nobody is
// answered, since what is answered then is over for an agent before a newer epoch leases anything.
// It looks at nothing itself; it is told what was seen. Pure; not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/time.h"

namespace parallelrun::coordinator {

class Newest {
 public:
  // `look`: for how long a look is good. `now`: it is made.
  Newest(Duration look, Instant now) : look_(look), looked_at_(now) {}

  // --- to look: one at a time, beside the decisions, since a volume may hang
  // One that begins from now on is wanted.
  void Ask() { asked_ = true; }
  bool Wants(Instant now) const;
  // None is wanted beside it, until OnLooked.
  void LookBegins() { looking_ = true; }
  // Somebody named this newer epoch. Not believed unseen: it may come from before the state folder
  // was emptied, or be made up. No look that began before now counts any more; once one has seen no
  // such epoch, its name is heard without that, or a confused node could keep all others waiting.
  void Named(uint32_t epoch, Instant now);
  // The look that began at `begun` gave this: kStale says that a newer epoch is there, kNotFound
  // that the epoch's own log is gone. Anything else could not be seen, and is looked for again.
  void OnLooked(Instant begun, const Status& seen, Instant now);

  // --- what it says
  // Whoever asked at `arrived` may be answered now. The last look is good still; or else, where
  // looks take longer than that, it began once the request was there: what is granted counts for
  // its agent from before the look, as with one that is good.
  bool MayAnswer(Instant arrived, Instant now) const;
  bool Fresh(Instant now) const;
  // No look has come back for so long that the state folder does not answer.
  bool Hangs(Instant now) const;
  // When the last look began that saw no newer epoch; before the first one, when this was made.
  Instant looked_at() const { return looked_at_; }

  // Final: a newer epoch is there.
  bool superseded() const { return superseded_; }
  // Why the ledger is gone, "": it is not. Nothing more can be promised then.
  const std::string& lost() const { return lost_; }
  // Why the state folder cannot be looked at, "": it can.
  const std::string& unseen() const { return unseen_; }

 private:
  const Duration look_;
  Instant looked_at_;
  bool looked_ = false;  // once
  bool asked_ = true;
  bool looking_ = false;                // one is on its way
  uint32_t named_ = 0;                  // the highest epoch that was named
  uint32_t disproved_ = 0;              // the highest that was named, and not there
  std::optional<Instant> counts_from_;  // since an epoch was named: looks that begin from then on
  std::optional<Instant> failed_at_;    // the last look, where it failed
  bool superseded_ = false;
  std::optional<Instant> gone_since_;
  std::string lost_;
  std::string unseen_;
};

}  // namespace parallelrun::coordinator
