// The version of an object that was planned, as its store has it: whoever reads another one would
// compute something else than its neighbours. Blocking; any thread.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "job/work_objects.h"
#include "store/store.h"

namespace parallelrun::agent {

// The planned version, ready to be read; whatever is there, of one that was not there when a
// manifest named it. kStale: it is not there any more, `mend` follows then, or it still is not.
Result<std::unique_ptr<store::Object>> OpenPlanned(store::Store& store,
                                                   const job::ObjectName& object,
                                                   const std::string& mend);

}  // namespace parallelrun::agent
