// Gets credentials from whoever gives them: STS, the container's endpoint, the instance's metadata
// service. Blocks for some seconds at most; no text of it holds a secret.
#pragma once

#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/credential_source.h"
#include "store/s3/xml.h"

namespace parallelrun::s3 {

struct FetchOptions {
  std::string ca_pem;              // trusted in place of the system's; may be empty
  Duration deadline = seconds(5);  // of one request
  std::stop_token stop;
};

// kPermission, where the answer is no, or nobody answers; kUnavailable, when a later try may
// succeed.
Result<SessionKeys> FetchKeys(const Source& source, const FetchOptions& options);

// The JSON that the container's endpoint and the metadata service answer. Pure. kCorrupt for
// anything else.
Result<SessionKeys> ParseKeysJson(const std::string& body);

// True when the time is over, false as soon as there is a stop.
bool Pause(Duration time, const std::stop_token& stop);

}  // namespace parallelrun::s3
