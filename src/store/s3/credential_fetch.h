// Gets credentials from whoever gives them: STS, the container's endpoint, the instance's metadata
// service. Blocks for some seconds at most; no text of it holds a secret.
#pragma once

#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "store/s3/answers.h"
#include "store/s3/credential_source.h"

namespace parallelrun::store::s3 {

struct FetchOptions {
  std::string ca_pem;              // trusted in place of the system's; may be empty
  Duration deadline = seconds(5);  // of one request
  std::stop_token stop;
};

// kPermission, where the answer is no, or nobody answers; kUnavailable, when a later try may
// succeed.
Result<SessionKeys> FetchKeys(const Source& source, const FetchOptions& options);

}  // namespace parallelrun::store::s3
