// Where a job's output goes, as its start and its end see it: a folder, or a store. Blocking I/O;
// for one thread at a time, but for Stop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/start/config.h"
#include "coordinator/start/earlier_run.h"
#include "coordinator/start/layout.h"
#include "coordinator/start/lost_side_files.h"
#include "ledger/ledger.h"
#include "ledger/state_notes.h"
#include "output/output_claim.h"
#include "output/sink.h"
#include "output/store/stored_side_files.h"

namespace parallelrun::coordinator {

class OutputPlace {
 public:
  virtual ~OutputPlace() = default;

  // Nothing that epochs before this one have begun becomes an output any more. Before anything is
  // decided.
  virtual Status EndOlder(uint32_t epoch) = 0;
  // Fills in what DecideStart must know of what is there.
  virtual Status Look(NewRun& run) = 0;
  // How what is there differs from what that run has published, in words that follow its name; "":
  // not at all. `step` is called now and then.
  virtual Result<std::string> Damage(const job::Published& published, uint64_t run_id,
                                     uint32_t generation, const std::function<void()>& step) = 0;
  // How it is found whether staged side files of that run are there.
  virtual HaveSideFiles SideFiles(uint64_t run_id) = 0;
  // Of runs other than that one nobody finds any more what is staged.
  virtual Status EndOtherSideFiles(const ledger::Ledger& ledger) = 0;
  // Where and how a store has its side files; nothing where they are on a volume.
  virtual std::optional<output::StoredSidePlaces> StoredSide(const ledger::Ledger&) { return {}; }
  // Nobody else publishes there from now on.
  virtual Status Hold(const output::ClaimOptions& options) = 0;
  // Lets go of it, if it is held.
  virtual Status GiveBack() = 0;
  // None where nothing is published. After Hold; the place and the ledger must outlive it.
  virtual std::shared_ptr<output::Sink> MakeSink(const ledger::Ledger& ledger,
                                                 uint32_t generation) = 0;
  // What explains the run goes beside an output in a store. While it is held, once its logs are
  // whole.
  virtual Status PutReports(const LogFolder&, const ledger::Ledger&, uint32_t) { return {}; }
  // Ends what waits for a store.
  virtual void Stop() {}
};

// All of these must outlive it; `notes` are those beside the ledger. kInvalid, kPermission: a store
// that cannot be used, in words.
Result<std::unique_ptr<OutputPlace>> OpenOutput(const CoordinatorConfig& config,
                                                const JobLayout& layout, Files& files,
                                                ledger::StateNotes& notes);

}  // namespace parallelrun::coordinator
