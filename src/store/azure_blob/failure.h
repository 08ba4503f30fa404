// What a failed request means, in words for people: where, with which credential, which right is
// missing, what to do. Pure. Texts of servers are shown as far as they are harmless, and short.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "store/azure_blob/address.h"
#include "store/azure_blob/sign.h"
#include "store/objects/refusal.h"
#include "store/objects/retry.h"

namespace parallelrun::store::azure_blob {

enum class Action { kList, kStat, kRead };

// What was asked for.
struct Request {
  Action action = Action::kList;
  Address address;
  std::string key;         // of a blob; for kList the prefix, with its '/', or empty
  std::string credential;  // in words: "AZURE_STORAGE_KEY of the environment"
};

// Of an answer; `code` is that of its body or header, or empty.
Outcome OutcomeOf(int status, std::string_view code, const Proof& proof);

// kNotFound for a blob or a container that is not there, kPermission where credentials or rights
// are at fault, kStale for a version that is gone, kUnavailable where a later try may succeed, else
// kInvalid.
Error Explain(const Request& request, const Server& server, const Proof& proof,
              const Refusal& refusal);

}  // namespace parallelrun::store::azure_blob
