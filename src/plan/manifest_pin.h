// Which manifest the items of an input were planned of, as the ledger keeps it in front of them
// (docs/ledger.md, "Manifests"). Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "plan/planner.h"
#include "store/store.h"

namespace parallelrun::plan {

struct PinnedManifest {
  store::Version version;
  uint64_t items_before = 0;  // of the job, in front of its first one
  bool operator==(const PinnedManifest&) const = default;
};

std::string PinOf(const PinnedManifest& manifest);
// kCorrupt when the text is none.
Result<PinnedManifest> ManifestIn(std::string_view pin);
// Of an input whose plan goes on, or is compared.
Status KeepManifest(std::string_view pin, PlanManifest& manifest);

}  // namespace parallelrun::plan
