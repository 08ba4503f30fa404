// What a failed request means, in words for people: where, with which credential, which right is
// missing, what to do. Pure. Texts of servers are shown as far as they are harmless, and short.
#pragma once

#include <string>

#include "base/error.h"
#include "store/s3/address.h"
#include "store/s3/answers.h"

namespace parallelrun::s3 {

enum class Action { kList, kStat, kRead };

// What was asked for.
struct Request {
  Action action = Action::kList;
  Address address;
  std::string key;         // of an object; for kList the prefix, with its '/', or empty
  std::string credential;  // in words: "AWS_ACCESS_KEY_ID of the environment (AKIA…MPLE)"
};

// How it ended.
struct Refusal {
  int status = 0;  // 0: there was no answer
  ErrorBody body;
  std::string request_id;  // what the server's people ask for
  std::string broken;      // in place of an answer: what the connection said
  int repeated = 0;        // how often it was sent again
};

// kNotFound for a key or bucket that is not there, kPermission where keys or rights are at fault,
// kStale for a version that is gone, kUnavailable where a later try may succeed, else kInvalid.
Error Explain(const Request& request, const Server& server, const Refusal& refusal);

}  // namespace parallelrun::s3
