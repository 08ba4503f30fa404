// How a request proves to Azure Blob Storage whose it is: the account's key signs it (Shared Key),
// a signature that somebody made goes with it (SAS), or a token of an identity does. Pure: the time
// is passed in, and the same request at the same time gets the same signature.
#pragma once

#include <string>
#include <variant>

#include "base/http/message.h"
#include "base/time.h"

namespace parallelrun::store::azure_blob {

struct SharedKey {
  std::string account;
  std::string key;  // its bytes; never shown
  bool operator==(const SharedKey&) const = default;
};
// "sv=...&sp=rl&...&sig=...", without a '?'. Never shown.
struct Sas {
  std::string token;
  bool operator==(const Sas&) const = default;
};
// Of an identity of Entra ID; never shown.
struct Bearer {
  std::string token;
  bool operator==(const Bearer&) const = default;
};
using Proof = std::variant<SharedKey, Sas, Bearer>;

// What the account's key signs: the request as it goes over the wire, with its body's length.
std::string StringToSign(const HttpRequest& request, const std::string& account);

// Adds x-ms-date and x-ms-version, and what the proof adds: Authorization, or parameters of the
// query. Path and query must be percent-encoded already, and all headers there.
void Sign(HttpRequest& request, const Proof& proof, WallTime now);

}  // namespace parallelrun::store::azure_blob
