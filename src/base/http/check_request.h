// Internal to the rooms that speak HTTP as clients: what a request must be before any of it is
// written. Pure.
#pragma once

#include <string>

#include "base/error.h"
#include "base/http/message.h"

namespace parallelrun {

// kInvalid where another byte, or a second header, would let its reader see another request than
// its sender meant: the text says what is wrong. `token` is the bearer token that goes with it; "":
// none, and then the request may carry an Authorization of its own.
Status CheckRequest(const HttpRequest& request, const std::string& token);

}  // namespace parallelrun
