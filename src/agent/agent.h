// The agent of one node: its edge to the outside. Connects AgentCore, which decides, to worker
// processes, the coordinator, signals and the clock.
#pragma once

#include "agent/agent_config.h"
#include "agent/core/agent_types.h"

namespace parallelrun::agent {

// Exit codes of an agent (docs/coordinator-api.md).
inline constexpr int kAgentFinished = 0;
inline constexpr int kAgentGaveUp = 1;
inline constexpr int kAgentCannotStart = 2;
inline constexpr int kAgentDrained = 3;
inline constexpr int kAgentNoRoom = 4;  // to start with; later there may be

// Runs the agent until the job is over, SIGTERM or SIGINT has drained it, or it cannot go on;
// returns its exit code. Call it on the program's main thread, once. Its messages go to the log.
int RunAgent(const AgentConfig& config, const AgentOptions& options);

}  // namespace parallelrun::agent
