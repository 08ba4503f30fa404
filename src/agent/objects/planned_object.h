// The version of an object that was planned, as its store has it: whoever reads another one would
// compute something else than its neighbours. Any thread; OpenPlanned blocks.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "job/work_objects.h"
#include "store/store.h"

namespace parallelrun::agent {

// The name of its file, below a folder of the object's own: all of its key, as labels may stand in
// it, whatever part of that the store's URL names. kInvalid: no file can be called so, in words.
Result<std::string> FileNameOf(const store::Store& store, const job::ObjectName& object);

// What was planned, without a request, which would take as long as a small object itself; nothing
// where that cannot be.
std::unique_ptr<store::Object> OpenUnasked(store::Store& store, const job::ObjectName& object);

// The planned version, ready to be read; whatever is there, of one that was not there when a
// manifest named it. kStale: it is not there any more, `mend` follows then, or it still is not.
Result<std::unique_ptr<store::Object>> OpenPlanned(store::Store& store,
                                                   const job::ObjectName& object,
                                                   const std::string& mend);

}  // namespace parallelrun::agent
