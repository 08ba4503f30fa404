// A blocking client for one API server, in JSON. No throttle of its own (the server's priority and
// fairness does that) and no cache: informers are the cache.
//
// Thread-safe; never call it from an EventLoop's callback. A call may reach the server twice (a
// kept connection that breaks is retried below), so creates use fixed names and the rest carry
// preconditions: a repeated create answers AlreadyExists. A 401 drops the credential and tries
// once more; redirects are not followed.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "kube/api_error.h"
#include "kube/config.h"
#include "kube/resource.h"
#include "kube/watch.h"

namespace parallelrun::kube {

// One request that ended, for metrics. Called on the caller's thread; must not block.
struct RequestDone {
  std::string verb;      // "get", "list", "watch" (until its headers), "create", "apply", ...
  std::string resource;  // "pods", "leases.coordination.k8s.io"; "raw" for GetRaw
  int status;            // 0: no answer
  Duration took;
};

struct ClientOptions {
  std::string user_agent = "parallelrun-operator";
  std::string field_manager = "parallelrun-operator";
  std::function<void(const RequestDone&)> on_request;
};

// How long one call may take. For leader election: about half of its renew deadline.
struct CallOptions {
  Duration timeout = seconds(30);
  // How often an answer 429 or 503 that carries Retry-After is waited out (all within `timeout`).
  int retries = 0;
};

struct ListOptions {
  std::string label_selector;
  std::string field_selector;
  std::string resource_version;        // "" quorum read; "0" from the server's cache
  std::string resource_version_match;  // "", "NotOlderThan", "Exact"
  int limit = 500;                     // of a page; 0 all at once
  std::string continue_token;          // of the page before
  bool metadata_only = false;          // PartialObjectMetadata: never the data of a Secret
};

struct ListPage {
  std::vector<nlohmann::json> items;  // without apiVersion and kind, as the server sends them
  std::string resource_version;
  std::string continue_token;  // "" on the last page
};

struct DeleteOptions {
  std::string uid;               // preconditions; "" for none. A mismatch answers Conflict
  std::string resource_version;  //
  std::string propagation;       // "Background", "Foreground", "Orphan"; "" is the kind's default
  int grace_seconds = -1;        // -1: the object's own
};

struct ApplyOptions {
  bool force = true;        // take fields over from other managers; otherwise Conflict
  std::string subresource;  // "status", "scale"; "" for the object itself
};

enum class PatchKind { kMerge, kJson };

class Client {
 public:
  // kInvalid for a configuration that cannot work. Sends nothing.
  static Result<std::unique_ptr<Client>> Make(ClientConfig config, ClientOptions options = {});
  // Cancels, and waits for the calls in flight.
  ~Client();

  ApiResult<nlohmann::json> Get(const Resource& resource, const ObjectName& name,
                                const CallOptions& call = {}, bool metadata_only = false);
  // One page of `name_space`, or of the whole cluster when that is "".
  ApiResult<ListPage> List(const Resource& resource, const std::string& name_space,
                           const ListOptions& options = {}, const CallOptions& call = {});

  // These send fieldValidation=Strict and answer the object as stored. `object` carries apiVersion,
  // kind and metadata.name (and namespace); a field that the server does not know is Invalid or
  // BadRequest, never dropped in silence.
  ApiResult<nlohmann::json> Create(const Resource& resource, const nlohmann::json& object,
                                   const CallOptions& call = {});
  // PUT: needs metadata.resourceVersion; a stale one answers Conflict.
  ApiResult<nlohmann::json> Update(const Resource& resource, const nlohmann::json& object,
                                   const CallOptions& call = {});
  // Server-side apply as the options' field manager. With metadata.resourceVersion in `object` a
  // stale one answers Conflict; without, the object is made if it is missing.
  ApiResult<nlohmann::json> Apply(const Resource& resource, const nlohmann::json& object,
                                  const ApplyOptions& options = {}, const CallOptions& call = {});
  // Apply on the subresource status, only if the object still is at `resource_version`.
  ApiResult<nlohmann::json> ApplyStatus(const Resource& resource, nlohmann::json object,
                                        const std::string& resource_version,
                                        const CallOptions& call = {});
  ApiResult<nlohmann::json> Patch(const Resource& resource, const ObjectName& name, PatchKind kind,
                                  const nlohmann::json& patch, const std::string& subresource = "",
                                  const CallOptions& call = {});
  // Answers the object as it is while it terminates, or a Status.
  ApiResult<nlohmann::json> Delete(const Resource& resource, const ObjectName& name,
                                   const DeleteOptions& options = {}, const CallOptions& call = {});

  // A path as it stands, with its query: "/openapi/v3/apis/parallelrun.dev/v1alpha1", "/version".
  ApiResult<std::string> GetRaw(const std::string& path_and_query, const CallOptions& call = {});

  // Begins a watch (watch.h) whose query is `query`; returns at the answer's headers. The stream
  // may outlive the client, which cancels it.
  ApiResult<std::unique_ptr<EventSource>> Watch(const Resource& resource,
                                                const std::string& name_space,
                                                const std::string& query, Duration silence_timeout,
                                                bool metadata_only = false);

  // Makes calls and watches in flight, and all later ones, fail at once.
  void Cancel();

  const ClientConfig& config() const;
  const ClientOptions& options() const;

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace parallelrun::kube
