// Whether this epoch is the newest, as far as was seen: without a look a moment ago nobody is
// answered, since what is answered then is over for an agent before a newer epoch leases anything.
// It looks at nothing itself; it is told what was seen. Pure; not thread-safe.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "base/time.h"

namespace parallelrun {

class Newest {
 public:
  // `look`: for how long a look is good.
  explicit Newest(Duration look) : look_(look) {}

  // A look began at `begun` and gave this: kStale says that a newer epoch is there, kNotFound that
  // the epoch's own log is gone. Anything else could not be seen, and is looked for again.
  void OnLooked(Instant begun, const Status& seen);
  // The last look is good still.
  bool Fresh(Instant now) const;

  // Final: a newer epoch is there.
  bool superseded() const { return superseded_; }
  // Why the ledger is gone, "": it is not. Nothing more can be promised then.
  const std::string& lost() const { return lost_; }
  // Why the state folder cannot be looked at, "": it can.
  const std::string& unseen() const { return unseen_; }

 private:
  const Duration look_;
  std::optional<Instant> looked_at_;
  bool superseded_ = false;
  std::optional<Instant> gone_since_;
  std::string lost_;
  std::string unseen_;
};

}  // namespace parallelrun
