// The agent's calls to its coordinator, apart from what they say: options, failures, goodbye.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>

#include "agent/agent_config.h"
#include "agent/core/agent_types.h"
#include "agent/stray_files.h"
#include "base/http/client.h"
#include "base/time.h"
#include "job/side_inputs.h"
#include "job/side_uploads.h"

namespace parallelrun::agent {

// Reads the certificate authority, if there is one.
Result<HttpClientOptions> ClientOptions(const AgentConfig& config);

// What an answer that is not 200 means to the core.
CallFailure FailureOf(CallKind call, const Result<HttpResponse>& response);

// Why a call failed, for people.
std::string FailureWords(const Result<HttpResponse>& response);

// How long an answer is waited for: little at first for the first words to a coordinator, and after
// a call that failed. When its address has just been made, or its pod anew, a connection may lead
// nowhere, for good, while a new one gets there.
class CallLimits {
 public:
  // `park`: how long the call asks the coordinator to hold it.
  Duration Of(CallKind call, Duration park) const;
  void OnResult(CallKind call, const Result<HttpResponse>& response);

 private:
  static constexpr Duration kFirst = seconds(1);
  static constexpr Duration kMost = seconds(60);
  Duration register_ = kFirst;
  Duration exchange_ = kMost;
};

// Says that the incarnation ends, why, and what files go with it. Best effort: the coordinator
// would find out that it ended.
void Leave(HttpClient& client, uint32_t node, const job::Incarnation& incarnation, AgentEnd end,
           const StrayFiles::Found& stray);

// URLs of objects of a side input (job/side_inputs.h), where this node has no keys of its store.
// Blocks, until `stop` at the latest, after which the client is of no use. kUnavailable whatever
// went wrong: the coordinator may be another one next time. Messages have no URL.
Result<job::SideUrls> AskForSideUrls(HttpClient& client, uint32_t node,
                                     const job::SideUrlsWanted& wanted,
                                     const std::stop_token& stop);

// Uploads of side files, and URLs by which their parts are sent (job/side_uploads.h). Blocks, as
// above. kNotFound: an upload is not known there; kStale: this node does not hold the mini-batch;
// kUnavailable: a later call may succeed; kInvalid: it will not. Messages have no URL.
Result<job::SideUploads> AskForSideUploads(HttpClient& client, uint32_t node,
                                           const job::SideUploadsWanted& wanted,
                                           const std::stop_token& stop);

}  // namespace parallelrun::agent
