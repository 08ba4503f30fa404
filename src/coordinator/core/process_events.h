// What one exchange says of its node's processes, each of it at least once: ProcessEvents passes it
// on to the parts that it concerns. It lives for that exchange. Pure but for the journal; not
// thread-safe.
#pragma once

#include <cstdint>

#include "coordinator/core/ending.h"
#include "coordinator/core/init_watch.h"
#include "coordinator/core/intake.h"
#include "coordinator/core/journal.h"
#include "coordinator/core/nodes.h"
#include "coordinator/core/program_errors.h"
#include "coordinator/core/standstill.h"
#include "coordinator/core/told.h"
#include "job/node_messages.h"

namespace parallelrun::coordinator {

struct ProcessEvents {
  Journal& journal;
  Nodes& nodes;
  Ending& ending;
  ProgramErrors& program_errors;
  Standstill& standstill;
  InitWatch& init_watch;
  Told& told;

  // `node` is registered. What its answer waits for, and whether something moved, goes into
  // `taken`.
  void Take(uint32_t node, const job::ExchangeRequest& request, Intake::Taken& taken) const;
};

}  // namespace parallelrun::coordinator
