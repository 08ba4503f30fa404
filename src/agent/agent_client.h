// The agent's calls to its coordinator, apart from what they say: options, failures, goodbye.
#pragma once

#include <cstdint>
#include <string>

#include "agent/agent_config.h"
#include "agent/agent_types.h"
#include "base/http_client.h"

namespace parallelrun {

// Reads the certificate authority, if there is one.
Result<HttpClientOptions> ClientOptions(const AgentConfig& config);

// What an answer that is not 200 means to the core.
CallFailure FailureOf(CallKind call, const Result<HttpResponse>& response);

// Why a call failed, for people.
std::string FailureWords(const Result<HttpResponse>& response);

// Says that the incarnation ends, and why. Best effort: the coordinator would find out.
void Leave(HttpClient& client, uint32_t node, const Incarnation& incarnation, AgentEnd end);

}  // namespace parallelrun
