#include "store/azure_blob/failure.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <variant>

#include "base/escape.h"

namespace parallelrun::store::azure_blob {
namespace {

// The codes that say enough by themselves, once it is said what to do.
struct Known {
  std::string_view code;
  Code error;
  std::string_view words;  // {0}: the container, {1}: the account, {2}: the credential, {3}: server
};
constexpr std::array kKnown{
    Known{"ContainerNotFound", Code::kNotFound,
          "there is no container {0} in account {1} at {3}: check its name and the endpoint"},
    Known{"ContainerBeingDeleted", Code::kNotFound, "container {0} is being deleted"},
    Known{"ContainerDisabled", Code::kPermission, "container {0} was disabled"},
    Known{"AccountIsDisabled", Code::kPermission, "account {1} is disabled"},
    Known{"BlobNotFound", Code::kNotFound, "there is no such blob in container {0}"},
    Known{"BlobArchived", Code::kInvalid,
          "the blob is archived: bring it back first (az storage blob set-tier --tier Hot)"},
    Known{"KeyBasedAuthenticationNotPermitted", Code::kPermission,
          "account {1} takes no keys and no SAS of them: use a workload identity in place of {2}"},
    Known{"InsufficientAccountPermissions", Code::kPermission,
          "account {1} allows only reading, or is being moved"},
    Known{"AuthorizationSourceIPMismatch", Code::kPermission,
          "{2} does not count from this address"},
    Known{"AuthorizationProtocolMismatch", Code::kPermission, "{2} wants https"},
    Known{"AuthorizationServiceMismatch", Code::kPermission, "{2} is not for blobs: it needs ss=b"},
};

// What Azure wants for it: the permission of a SAS.
const char* LetterFor(Action action) { return action == Action::kList ? "l" : "r"; }

std::string Denied(const Request& request, const Proof& proof) {
  if (std::holds_alternative<Sas>(proof)) {
    const std::string letter = LetterFor(request.action);
    return fmt::format(
        "{} does not allow this: it needs permission {} (sp={}), and must be for container {} or "
        "its account (sr=c, or srt={})",
        request.credential, letter == "l" ? "list" : "read", letter, request.address.container,
        letter == "l" ? "c" : "o");
  }
  return fmt::format(
      "the role Storage Blob Data Reader is missing on container {} of account {}: grant it to {} "
      "(az role assignment create)",
      request.address.container, request.address.account, request.credential);
}

// The proof itself was not believed.
std::string NotBelieved(const Request& request, const Server& server, const Proof& proof) {
  if (std::holds_alternative<SharedKey>(proof)) {
    return fmt::format("the key does not belong to account {} at {}: check {}",
                       request.address.account, Printable(server.host, kShownLong),
                       request.credential);
  }
  if (std::holds_alternative<Sas>(proof)) {
    return fmt::format(
        "account {} does not accept {}: it has ended, was withdrawn, or was made for "
        "something else",
        request.address.account, request.credential);
  }
  return fmt::format("account {} does not accept the token of {}: is it of the same tenant?",
                     request.address.account, request.credential);
}

struct Meaning {
  Code code;
  std::string words;
};

Meaning MeaningOf(const Request& request, const Server& server, const Proof& proof,
                  const Refusal& refusal) {
  const std::string host = Printable(server.host, kShownLong);
  for (const Known& known : kKnown) {
    if (refusal.body.code != known.code) continue;
    return {known.error, fmt::format(fmt::runtime(known.words), request.address.container,
                                     request.address.account, request.credential, host)};
  }
  // Azure says so of its firewall, and servers like it of all that they do not believe.
  if (refusal.body.code == "AuthorizationFailure") {
    return {Code::kPermission, NotBelieved(request, server, proof) +
                                   "; or the account's firewall keeps this machine out"};
  }
  const bool right = refusal.body.code.find("PermissionMismatch") != std::string::npos ||
                     refusal.body.code.find("ResourceTypeMismatch") != std::string::npos;
  switch (refusal.status) {
    case kUnauthorized: return {Code::kPermission, NotBelieved(request, server, proof)};
    case kForbidden:
      return {Code::kPermission,
              right ? Denied(request, proof) : NotBelieved(request, server, proof)};
    case kNotFound:
      return {Code::kNotFound, request.action == Action::kList
                                   ? fmt::format("there is no such container at {}", host)
                                   : "there is no such blob"};
    case kPreconditionFailed: return {Code::kStale, "it was changed since it was opened"};
    default: break;
  }
  if (OutcomeOfStatus(refusal.status) == Outcome::kFinal && refusal.status < 500) {
    return {Code::kInvalid,
            fmt::format("{} refuses the request; is it a server for Azure Blob Storage?", host)};
  }
  return {Code::kUnavailable, fmt::format("{} is overloaded or broken; sent {} times in vain", host,
                                          refusal.repeated + 1)};
}

}  // namespace

Outcome OutcomeOf(int status, std::string_view code, const Proof& proof) {
  static constexpr std::array<std::string_view, 3> kBusy{"ServerBusy", "TooManyRequests",
                                                         "IngressOverAccountLimit"};
  if (status / 100 != 2 && std::find(kBusy.begin(), kBusy.end(), code) != kBusy.end()) {
    return Outcome::kThrottled;
  }
  // A token that ended before we thought it would; of keys and SAS there is no other.
  if (status == kUnauthorized && std::holds_alternative<Bearer>(proof)) return Outcome::kExpired;
  return OutcomeOfStatus(status);
}

Error Explain(const Request& request, const Server& server, const Proof& proof,
              const Refusal& refusal) {
  static constexpr std::array kVerbs{"listing", "looking at", "reading"};
  Address root = request.address;
  root.prefix.clear();
  const std::string place = fmt::format("{} {}", kVerbs[static_cast<size_t>(request.action)],
                                        Printable(root.Url("") + "/" + request.key, kShownLong));
  if (refusal.status == 0) {
    return Error{Code::kUnavailable,
                 fmt::format("{}, sent {} times; check the account's name, the network and the "
                             "endpoint",
                             refusal.broken, refusal.repeated + 1)}
        .With(place);
  }
  const Meaning meaning = MeaningOf(request, server, proof, refusal);
  return Error{meaning.code, fmt::format("{} ({})", meaning.words, Said(refusal))}.With(place);
}

}  // namespace parallelrun::store::azure_blob
