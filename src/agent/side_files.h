// Side files of a node that go to a store (agent/objects/side_sender.h): by whom they are sent, and
// what is left of them. Blocking I/O.
#pragma once

#include <string>

#include "agent/agent_config.h"
#include "agent/objects/side_sender.h"
#include "base/files.h"

namespace parallelrun::agent {

// With a client of its own, since its threads may be left behind with it. `side_store`: as
// JobSettings has it.
SideSender::Facts SideSenderFacts(const AgentConfig& config, const std::string& side_store);

// All that lies in SideFileFolder, with that. What cannot be removed is told in the log.
void RemoveSideFiles(const Files& files, const AgentConfig& config);

}  // namespace parallelrun::agent
