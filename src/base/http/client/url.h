// Internal to http/client, and to those who sign what they send: where a server is, taken from its
// URL. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace parallelrun {

struct HttpUrl {
  bool tls = false;
  std::string host;  // a name or an address; an IPv6 address without its brackets
  uint16_t port = 0;
  std::string prefix;  // what stands before every path: "" or "/a/b", percent-encoded

  // What the header Host says: the port is left out where it is the scheme's own.
  std::string HostHeader() const;
};

// "http://host", "https://host:port/prefix/", "https://[::1]:port". kInvalid for anything else: a
// user, a query, a fragment, bytes that a URL must encode.
Result<HttpUrl> ParseHttpUrl(const std::string& text);

}  // namespace parallelrun
