// Where a job's state lies, as its start sees it: its ledger, and what is noted beside that.
// Blocking I/O; for one thread at a time.
#pragma once

#include <memory>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/start/config.h"
#include "coordinator/start/layout.h"
#include "ledger/ledger.h"
#include "ledger/state_notes.h"

namespace parallelrun::coordinator {

class StatePlace {
 public:
  virtual ~StatePlace() = default;

  // They, and the ledger, may not outlive it.
  virtual ledger::StateNotes& notes() = 0;
  // As Ledger::Claim.
  virtual Result<std::unique_ptr<ledger::Ledger>> Claim(const ledger::Ledger::Visitor& visit) = 0;
  // Ends what waits for a store.
  virtual void Stop() {}
};

// All of these must outlive it. The state folder is made if missing.
Result<std::unique_ptr<StatePlace>> OpenState(const CoordinatorConfig& config,
                                              const JobLayout& layout, Files& files);

}  // namespace parallelrun::coordinator
