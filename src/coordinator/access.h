// Who may call what of the coordinator's API (docs/coordinator-api.md). Pure, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/http/message.h"

namespace parallelrun::coordinator {

// Token of a role ("node:3", "viewer", "operator") under the job's key: hexadecimal HMAC-SHA256.
std::string RoleToken(const std::string& key, std::string_view role);

// `{"error": {"code", "message"}}`.
HttpResponse ErrorResponse(int status, std::string_view code, const std::string& message);

// Decides on a request by method, path and token alone: how many bytes of body it may have, or
// the refusal. A path that does not exist is refused only after the token was found right.
std::variant<size_t, HttpResponse> Admit(const HttpRequest& request, const std::string& key);

}  // namespace parallelrun::coordinator
