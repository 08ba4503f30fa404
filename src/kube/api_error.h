// What an API server, or the way to it, answers when a call fails. A value, like base/error.h, with
// the fields that decide what to do next.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/http/message.h"
#include "base/time.h"

namespace parallelrun::kube {

struct ApiError {
  // HTTP status, or 0 when no answer came: then `code` says why (kUnavailable: refused, reset, not
  // trusted, cancelled; kTimeout; kInvalid: a call that must not be sent).
  int status = 0;
  // metav1.Status's reason: "AlreadyExists", "NotFound", "Conflict", "Invalid", "Forbidden",
  // "Unauthorized", "TooManyRequests", "Expired", ... Filled in from the HTTP status when the
  // server sent none; "" when no answer came.
  std::string reason;
  std::string message;  // printable; names the call and its object
  std::optional<Duration> retry_after;
  Code code = Code::kInternal;

  bool Is(std::string_view r) const { return reason == r; }
  bool NotFound() const { return Is("NotFound"); }
  bool AlreadyExists() const { return Is("AlreadyExists"); }
  bool Conflict() const { return Is("Conflict"); }
  // The resourceVersion, or the token of a paged list, is too old: list again.
  bool Expired() const { return status == 410; }
  // The server does not know the resourceVersion yet (HTTP 504): list without one.
  bool TooLargeResourceVersion() const;
  // The name is taken by an object that is still Terminating (409 on a create).
  bool BeingDeleted() const;
  // The namespace is being deleted: nothing is created in it any more (403 on a create).
  bool NamespaceTerminating() const;
  // A later, identical call may succeed: no answer, 429, 5xx.
  bool Transient() const;

  // For callers that show it only.
  Error ToError() const { return {code, message}; }
};

// From an answer whose status is not 2xx; `call` names it: "GET pods default/x".
ApiError ApiErrorOf(const HttpResponse& response, const std::string& call);
// From a call that got no answer.
ApiError ApiErrorOf(const Error& error);
// From a metav1.Status that came inside a 200 stream of a watch.
ApiError ApiErrorOfStatus(const nlohmann::json& status, const std::string& call);

template <typename T>
using ApiResult = Result<T, ApiError>;

}  // namespace parallelrun::kube
