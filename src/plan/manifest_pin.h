// Which manifest the items of an input were planned of, as the ledger keeps it in front of them
// (docs/ledger.md, "Manifests"). Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "store/store.h"

namespace parallelrun::plan {

std::string PinOf(const store::Version& manifest);
// kCorrupt when the text is none.
Result<store::Version> ManifestIn(std::string_view pin);

}  // namespace parallelrun::plan
