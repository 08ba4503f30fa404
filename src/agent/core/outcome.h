// Outcome: how a mini-batch ended here, as it is reported. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/core/agent_types.h"
#include "agent/core/process_facts.h"
#include "base/error.h"
#include "base/time.h"
#include "job/attempt_result.h"
#include "job/ids.h"
#include "job/node_messages.h"

namespace parallelrun::agent {

// By default it is handed back: nothing came of it, and nothing is counted.
struct Outcome : job::AttemptResult {
  job::Finished::Kind kind = job::Finished::Kind::kReturned;
  job::Cause cause = job::Cause::kRun;
  std::string error_kind;
  std::string message;
  std::string log;
  job::OutputRanges output{};
};

Outcome Succeeded(const ResultAnswer& answer, Duration elapsed);
Outcome Failed(FailedAnswer answer, Duration elapsed);
// Its objects cannot be had.
Outcome NotFetched(const Error& why);
// Its process, of that node, died by it as `words` say, or was killed for it. `output` is that of
// the mini-batch that it worked on.
Outcome OfDeath(uint32_t node, uint32_t process, const Ended& ended, const Orphan& orphan,
                const std::string& words, const job::OutputRanges& output);

// Whether the rows of a result are what they must be: in the output others stand before and behind
// them. `parts` came before the answer. `staged`: a list of side files stands in front.
bool WholeRows(std::string_view parts, const ResultAnswer& answer, Rows rows, bool staged = false);

// Where a process of that node writes, below the folder of logs.
std::string StderrLog(uint32_t node, uint32_t process);
std::string ErrorLog(uint32_t node, uint32_t process);

}  // namespace parallelrun::agent
