// What a failed request means, in words for people: where, with which credential, which right is
// missing, what to do. Pure. Texts of servers are shown as far as they are harmless, and short.
#pragma once

#include <string>

#include "base/error.h"
#include "store/objects/refusal.h"
#include "store/s3/address.h"

namespace parallelrun::store::s3 {

enum class Action { kList, kStat, kRead, kWrite, kRemove, kEndUpload, kLookAtUpload };

// What was asked for.
struct Request {
  Action action = Action::kList;
  Address address;
  std::string key;         // of an object; for kList the prefix, with its '/', or empty
  std::string credential;  // in words: "AWS_ACCESS_KEY_ID of the environment (AKIA…MPLE)"
};

// kNotFound for a key, a bucket or an upload that is not there, kPermission where keys or rights
// are at fault, kStale for a version that is gone, kUnavailable where a later try may succeed, else
// kInvalid.
Error Explain(const Request& request, const Server& server, const Refusal& refusal);

}  // namespace parallelrun::store::s3
