// Side files of a job whose output lies in a store (docs/ledger.md, "Side files in a store"): each
// was left by its attempt as an upload that is not complete. Once it is decided which attempts
// count, theirs are completed, each on the condition of what stands in its place, and all others
// ended. Blocking I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/ids.h"
#include "job/job_state.h"
#include "job/side_list.h"
#include "ledger/ledger.h"
#include "ledger/state_notes.h"
#include "output/output_file.h"
#include "output/sink.h"
#include "output/store/store_sink.h"
#include "store/write_store.h"

namespace parallelrun::output {

// By which a side file in a store is known: they are given to its upload when that is begun.
store::Marks MarksOfSideFile(const OutputMark& mark, const Sha256::Digest& sha256);

// What is to be done about what stands in a side file's place. Pure.
StoreStep NextSideStep(const std::optional<store::Stored>& there, uint64_t run_id,
                       const job::SideFile& file, bool may_replace);

struct StoredSidePlaces {
  store::WriteStore* store = nullptr;
  ledger::StateNotes* notes = nullptr;  // beside the ledger
  std::string folder;                   // in front of names in the store: "" or "a/b/"
  uint64_t run_id = 0;
  std::vector<std::string> reserved;  // names at its top that the job itself uses
  // kExists: another run has claimed the output by now.
  std::function<Status()> held = [] { return Status(); };
};

// Brings all of a state's results to their places, or nothing as far as anybody can know before,
// and ends all other uploads of the run. kExists: something that is not this run's is in the place
// of one. kInvalid: an upload is gone, and so is its result. `newest`: kStale, a newer epoch is
// there. Where that is not known any more, as after a crash, it is called again.
Status PublishSideFiles(const StoredSidePlaces& places, const ledger::Ledger& ledger,
                        const job::JobState& state, const Replaceable& replaceable,
                        const std::function<Status()>& newest);

// Of each of these: whether all of its files are in their places, or are uploads still.
Result<std::vector<bool>> HaveSideFiles(const StoredSidePlaces& places,
                                        const std::vector<job::SideList>& lists);

}  // namespace parallelrun::output
