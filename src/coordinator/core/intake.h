// Intake takes what one exchange says of mini-batches, from an agent that is in force: renews,
// adopts, acknowledges, records or refuses. It lives for that exchange and gathers what came of it:
// the answer as it grows, and facts for its caller. Call the Take functions in their order here.
// Pure but for the journal; not thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "base/time.h"
#include "coordinator/core/attempts.h"
#include "coordinator/core/journal.h"
#include "coordinator/refusals.h"
#include "job/availability.h"
#include "job/node_messages.h"
#include "plan/plan_store.h"

namespace parallelrun::coordinator {

class Intake {
 public:
  // What came of it.
  struct Taken {
    job::ExchangeReply reply;  // settled, refused, adopted
    uint64_t position = 0;     // the answer waits until the ledger is durable up to here
    bool compared = true;      // every offer; false: one is made again, once its chunk is read
    bool moved = false;        // an attempt has ended
    std::vector<const job::Finished*>
        failed;  // attempts that were recorded as failed; of the request
    std::vector<RefusedReport> refused;
  };

  // All must outlive this. `worked`, `wall_us`: now, as working time and as wall time.
  Intake(uint32_t node, const job::ExchangeRequest& request, WorkInstant worked, int64_t wall_us,
         Journal& journal, job::Availability& availability, Attempts& attempts,
         plan::PlanStore& plan);

  // Ends the leases of answers that the node will never see.
  void TakeUnheard();
  void TakeHeld();
  void TakeOffered();
  void TakeParts();
  void TakeFinished();

  Taken& taken() { return taken_; }

 private:
  // It has that mini-batch, and goes on if nobody else does.
  void Adopt(const job::LeaseName& name, RefusedReport::Kind kind, bool started);
  void TakeOne(const job::Finished& done);
  // Not under a lease of its own that is live.
  void TakeLate(const job::Finished& done);
  // Acknowledges `name` if its record is in the ledger already.
  bool Repeated(const job::LeaseName& name);
  void Refuse(const job::LeaseName& name, RefusedReport::Kind kind, RefusalReason why);
  // It may be in run() of it all the same, for as long as it has not heard.
  void RefuseAndBlock(const job::LeaseName& name, RefusedReport::Kind kind, RefusalReason why);
  RefusalReason WhyRefused(job::BatchId id) const;
  void WaitFor(uint64_t position);

  const job::Asker asker_;
  const job::ExchangeRequest& request_;
  const WorkInstant worked_;
  const int64_t wall_us_;
  Journal& journal_;
  job::Availability& availability_;
  Attempts& attempts_;
  plan::PlanStore& plan_;
  Taken taken_;
};

}  // namespace parallelrun::coordinator
