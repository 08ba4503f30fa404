// How the coordinator's traces name and say things: "0@1.2" is mini-batch 0 under the fence 2 of
// epoch 1, "0/3" the second half of mini-batch 0. Pure.
#pragma once

#include <string>
#include <vector>

#include "coordinator/coordinator.h"
#include "job/node_messages.h"
#include "job/records.h"
#include "tests/traces/trace.h"

namespace parallelrun::trace {

std::string Say(const LeaseName& name);
std::string Say(const Incarnation& incarnation);
// What an exchange was answered: "leased 0@1.1; settled 3@1.2; drain".
std::string Say(const Result<ExchangeReply>& reply);
// What a record says; "" for those by which only a coordinator's start shows.
std::string Say(const Record& record);

LeaseName ReadLease(Command& command, const std::string& text);
Incarnation ReadIncarnation(Command& command, const std::string& text);
Cause ReadCause(Command& command, const std::string& text);
ProcessEvent::Kind ReadEvent(Command& command, const std::string& text);
Thresholds ReadThresholds(Command& command);
CoordinatorLimits ReadLimits(Command& command);
// What done=…, failed=… and returned=… say.
std::vector<Finished> ReadFinished(Command& command, const JobState& state);

}  // namespace parallelrun::trace
