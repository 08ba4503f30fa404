// What a run begins with: an epoch of its ledger is claimed, it is decided what becomes of what an
// earlier run left, and that is written down before anybody is served. Blocking I/O, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/start/config.h"
#include "coordinator/start/layout.h"
#include "coordinator/start/output_place.h"
#include "coordinator/start/start_server.h"
#include "coordinator/start/state_place.h"
#include "job/job_state.h"
#include "job/side_inputs.h"
#include "ledger/ledger.h"

namespace parallelrun::coordinator {

// What the state holds, and what it is continued with.
struct Opened {
  std::unique_ptr<ledger::Ledger> ledger;
  job::JobState state;
  uint32_t first_epoch = 0;  // of the run
  std::string plan_settings;
  std::string job;  // canonical JSON
};

// How the run goes on, once its first group is written.
struct Begun {
  std::string warning;                           // for a person who continues it; empty: none
  bool with_nothing = false;                     // with an empty history
  bool replaces = false;                         // its output takes the place of one that has rows
  std::vector<job::SideInput> side_inputs = {};  // those in stores
};

// Claims an epoch and reads the ledger; `starting` is told of each record.
Result<Opened> Claim(const CoordinatorConfig& config, const JobLayout& layout, StatePlace& state,
                     StartServer& starting);

// Holds the output, sets the logs of an earlier run aside and writes the epoch's first group, as
// what is there asks for. An error is the run's refusal, for the user: neither a token nor a claim
// of this epoch is left where the output goes.
Result<Begun> BeginRun(const CoordinatorConfig& config, const JobLayout& layout,
                       const LogFolder& log_folder, Files& files, ledger::StateNotes& notes,
                       OutputPlace& output, StartServer& starting, Opened& opened);

}  // namespace parallelrun::coordinator
