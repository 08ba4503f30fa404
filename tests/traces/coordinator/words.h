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

std::string Say(const job::LeaseName& name);
std::string Say(const job::Incarnation& incarnation);
// What an exchange was answered: "leased 0@1.1; settled 3@1.2; drain".
std::string Say(const Result<job::ExchangeReply>& reply);
// What a record says; "" for those by which only a coordinator's start shows.
std::string Say(const job::Record& record);

job::LeaseName ReadLease(Command& command, const std::string& text);
job::Incarnation ReadIncarnation(Command& command, const std::string& text);
job::Cause ReadCause(Command& command, const std::string& text);
job::ProcessEvent::Kind ReadEvent(Command& command, const std::string& text);
job::Thresholds ReadThresholds(Command& command);
coordinator::CoordinatorLimits ReadLimits(Command& command);
// What done=…, failed=… and returned=… say.
std::vector<job::Finished> ReadFinished(Command& command, const job::JobState& state);

}  // namespace parallelrun::trace
