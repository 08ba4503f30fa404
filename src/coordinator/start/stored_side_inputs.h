// The side inputs of a job that lie in stores (job/side_inputs.h): listed when a run begins, and
// kept beside its state, so that whoever goes on with the run has nodes fetch the same versions.
// Blocking I/O, no state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/side_inputs.h"
#include "ledger/state_notes.h"
#include "plan/planner.h"

namespace parallelrun::coordinator {

// What is there now, of each. `most` bytes of all together: what a node keeps of objects. An error
// names the side input, and says what to mend; so does a right to read that is missing, which one
// look at an object tells.
Result<std::vector<job::SideInput>> ListSideInputs(const std::vector<plan::PlanInput>& wanted,
                                                   const plan::OpenStore& open, uint64_t most);

// Those that this run has kept and that the job still names as it did; nothing of another run.
// kCorrupt: they cannot be read.
Result<std::vector<job::SideInput>> KeptSideInputs(ledger::StateNotes& notes, uint64_t run_id,
                                                   const std::vector<plan::PlanInput>& wanted);

// Of a run that goes on what it has kept; what it has not is listed. In the order of `wanted`.
Result<std::vector<job::SideInput>> GoOnWithSideInputs(ledger::StateNotes& notes, uint64_t run_id,
                                                       const std::vector<plan::PlanInput>& wanted,
                                                       const plan::OpenStore& open, uint64_t most);

// Before any node hears of them.
Status KeepSideInputs(ledger::StateNotes& notes, uint64_t run_id,
                      const std::vector<job::SideInput>& side_inputs);

}  // namespace parallelrun::coordinator
