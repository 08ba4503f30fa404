// Where a container is: taken from its URL and its endpoint. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::store::azure_blob {

struct Address {
  std::string account;
  std::string domain = "dfs.core.windows.net";  // behind "account."
  std::string container;
  std::string prefix;  // "a/b" for names that begin with "a/b/"; empty: all of the container

  // The whole name of a blob, of one that is relative to the prefix.
  std::string KeyOf(std::string_view name) const;
  // "abfss://container@account.dfs.core.windows.net/a/b", and for a name one '/' and the name
  // behind it.
  std::string Url(std::string_view name) const;
};

// Whether a text is meant as such a URL.
bool IsUrl(std::string_view text);

// Whether such a URL has a SAS behind it, or may have: that is a secret.
bool MayHoldSas(std::string_view text);

// "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX", or
// "https://ACCOUNT.blob.core.windows.net/CONTAINER/PREFIX": the same, however it is written. Names
// stand in it as they are, without percent-encoding. kInvalid for what is not so, with the reason;
// what follows a '?' may be a signature, and is in no message.
Result<Address> ParseAddress(const std::string& url);

// Where requests for one container go.
struct Server {
  std::string url;          // "https://host", for the client
  std::string host;         // as the header Host names it
  std::string path_prefix;  // before "/" and the name of a blob: "/container"
  bool is_private = true;   // nobody reads on the way: TLS, or this machine
};

// Azure's endpoint of the account where `endpoint` is empty; else an URL that has the account in
// its host or in its path, as Azurite's ("http://127.0.0.1:10000/devstoreaccount1"). kInvalid for
// one that cannot be such.
Result<Server> ServerOf(const Address& address, const std::string& endpoint);

// Whether a token may be sent there: TLS, or this machine.
bool IsPrivate(const std::string& url);

}  // namespace parallelrun::store::azure_blob
