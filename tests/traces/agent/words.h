// What an agent says to its coordinator, in the words of the traces.
#pragma once

#include <string>
#include <vector>

#include "agent/core/agent_types.h"
#include "job/node_messages.h"

namespace parallelrun::trace {

const char* EndWords(agent::AgentEnd end);

// It has no news: at most a list of what is held, and what is wanted.
bool IsPlain(const job::ExchangeRequest& request);

// The first line says what kind it is; what it tells stands below, indented.
std::vector<std::string> LinesOf(agent::CallKind call, const job::ExchangeRequest& request);

}  // namespace parallelrun::trace
