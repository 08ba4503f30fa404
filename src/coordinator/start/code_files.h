// The files of a run's code with their digests, kept beside its state. The digest of the whole says
// on a resume that the code is another one; these say which file, which is often none that anybody
// would call code. Of local runs: on a cluster the code is a ConfigMap.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "ledger/state_notes.h"

namespace parallelrun::coordinator {

using CodeFiles = std::map<std::string, std::string>;  // path below the code: digest

inline constexpr size_t kMostCodeFileBytes = size_t{512} << 10;  // of more, none are kept

// "score.py was changed, and 2 more": the first in byte order; "" where they are the same, or where
// either of them is unknown. Pure.
std::string FirstChange(const CodeFiles& before, const CodeFiles& now);

// Those of the code with that digest; none where there is no note of it.
CodeFiles KeptCodeFiles(ledger::StateNotes& notes, uint64_t digest);

// In place of those of an earlier code. Blocking I/O.
Status KeepCodeFiles(ledger::StateNotes& notes, uint64_t digest, const CodeFiles& files);

}  // namespace parallelrun::coordinator
