#include "base/http/check_request.h"

#include <strings.h>

#include <algorithm>
#include <array>

#include "base/escape.h"

namespace parallelrun {
namespace {

// Headers that a client writes itself: a second one would let two readers see two requests.
bool IsOurs(const std::string& name) {
  static constexpr std::array kOurs{"host", "content-length", "transfer-encoding", "connection"};
  return std::any_of(kOurs.begin(), kOurs.end(),
                     [&](const char* ours) { return strcasecmp(name.c_str(), ours) == 0; });
}

}  // namespace

Status CheckRequest(const HttpRequest& request, const std::string& token) {
  const auto is_plain = [](unsigned char c) { return c > 0x20 && c < 0x7f; };
  const bool plain_target = std::all_of(request.path.begin(), request.path.end(), is_plain) &&
                            std::all_of(request.query.begin(), request.query.end(), is_plain);
  if (request.path.empty() || request.path[0] != '/' || !plain_target) {
    return Error{Code::kInvalid, "the path must start with / and be percent-encoded"};
  }
  if (!IsSafeHeader({request.method, ""})) {
    return Error{Code::kInvalid, "the method must be a word"};
  }
  for (const HttpHeader& header : request.headers) {
    if (!IsSafeHeader(header)) {
      return Error{Code::kInvalid, "header " + Printable(header.name, kShown) +
                                       " holds bytes that are not allowed in headers"};
    }
    const bool second = !token.empty() && strcasecmp(header.name.c_str(), "authorization") == 0;
    if (second || IsOurs(header.name)) {
      return Error{Code::kInvalid, "header " + header.name + " is written by the client itself"};
    }
  }
  if (!IsSafeHeader({"Authorization", token})) {
    return Error{Code::kInvalid, "the bearer token holds bytes that are not allowed in headers"};
  }
  return {};
}

}  // namespace parallelrun
