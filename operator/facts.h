// Reads what a plan asks to know of other objects, one at a time (Plan::needs).
#pragma once

#include <memory>
#include <string>

#include "base/time.h"
#include "kube/client.h"
#include "operator/observed.h"

namespace parallelrun::operators {

// Never fails: what cannot be read is a Fact too. Of a Secret only its metadata is read.
// Thread-safe.
Fact ReadFact(kube::Client& client, const std::string& name_space, const FactKey& key,
              const Clock& clock);

}  // namespace parallelrun::operators
