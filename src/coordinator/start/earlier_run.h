// What becomes of what an earlier run left in the state folder. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/data.h"
#include "base/error.h"
#include "job/job_state.h"
#include "plan/input_changes.h"

namespace parallelrun::coordinator {

// Who starts, with what, and what is there besides the ledger.
struct NewRun {
  api::IfExists if_exists = api::IfExists::kFail;
  std::string resource_uid;
  uint64_t code_digest = 0;
  std::string code_change;  // the first file in which it is another one (FirstChange); or empty
  std::string plan_settings;
  std::string job;  // JSON
  std::string state_folder;
  std::string output_folder;
  // Of the appended file, or what is published to a store; empty with SummaryOnly on a volume.
  std::string output_path;
  // A file at that path; without one whatever lies in the folder and is not the job's own.
  bool output_there = false;
  std::string lies_there;         // of that: a name of it
  uint64_t output_bytes = 0;      // of the file
  std::string empty_if_existing;  // "inputs[day]": one with allowEmpty: Existing, if there is one
  // How it differs from what the run had published, in words; empty: not at all, or nobody looked.
  std::string output_damage;
  // Of results that were to be published: their mini-batches are run again.
  bool side_files_lost = false;
  // This very job had the output before: its state was lost with an earlier pod.
  bool had_output = false;
  bool in_pod = false;  // nobody else's command line, and no lock on the state folder
};

struct StartDecision {
  bool write_settings = false;
  uint32_t generation = 1;
  bool overwrite = false;            // with an empty history
  bool logs_aside = false;           // those that lie there are not of this run
  bool may_replace = false;          // whatever is in the output's place
  std::vector<std::string> changed;  // what makes run() another one than before, a line each
  std::string damage;                // of the output, which is published again
  // Results whose process did not end its shutdown() are void.
  bool run_again = false;
  // A person continues the run: its files must be those that were planned.
  bool continues = false;
  // A person asks for a run that has finished: its success is only told if its files are still
  // those.
  bool has_finished = false;
};

// Whether an output without rows would replace rows, as far as anybody knows: of the run itself it
// is known what it has published.
bool HoldsRows(const NewRun& run, const job::JobState& state);

// Whether it matters that the output still is what was published: to a person who continues a run
// that had published it.
bool AsksForDamage(const NewRun& run, const job::JobState& state);

// Whether it matters that staged side files are still there: to a person who continues a run that
// has not published them.
bool AsksForSideFiles(const NewRun& run, const job::JobState& state);

// kExists and kInvalid say what a user can do instead.
Result<StartDecision> DecideStart(const NewRun& run, const job::JobState& state);

// What becomes of a decision that continues the run, with the files that are there now. Files that
// were added change no mini-batch: they are left out. Of a run that has finished any change is told
// as an error: nothing will be done about it.
Result<StartDecision> DecideWithInputs(const NewRun& run, const job::JobState& state,
                                       const StartDecision& decision,
                                       const plan::InputChanges& changes);

// What a person who continues a run should know; empty when run() and the files are what they were.
std::string WarningOf(const StartDecision& decision, const plan::InputChanges& changes);

}  // namespace parallelrun::coordinator
