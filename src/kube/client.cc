#include "kube/client.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/escape.h"
#include "base/http/target.h"
#include "base/json.h"

namespace parallelrun::kube {
namespace {

using Json = nlohmann::json;
using Steady = std::chrono::steady_clock;

// A watch's headers come when the server has an event or a bookmark; it sends them at once, but a
// proxy may not.
constexpr Duration kWatchHeaders = seconds(30);
// A list in one piece: 20,000 large pods.
constexpr size_t kMaxResponse = size_t{256} * 1024 * 1024;
constexpr const char* kJson = "application/json";
constexpr const char* kMetadata =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
constexpr const char* kMetadataList =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

std::string Text(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void AddQuery(std::string& query, const char* name, const std::string& value) {
  if (value.empty()) return;
  if (!query.empty()) query += '&';
  query += std::string(name) + "=" + PercentEncode(value);
}

ApiError Invalid(const std::string& call, const std::string& what) {
  return ApiErrorOf(Error{Code::kInvalid, call + ": " + what});
}

// One call: what to send, and what to call it in messages and metrics.
struct Call {
  std::string verb;
  std::string resource;
  std::string about;  // "create pods default/x"
  HttpRequest request;
};

Call MakeCall(const char* verb, const Resource& resource, const ObjectName& name,
              const std::string& method, const std::string& subresource = "") {
  Call call;
  call.verb = verb;
  call.resource = resource.Name();
  call.about = call.verb + " " + call.resource;
  call.about += name.name.empty() ? name.name_space.empty() ? "" : " in " + name.name_space
                                  : " " + name.Key();
  if (!subresource.empty()) call.about += " (" + subresource + ")";
  call.request.method = method;
  call.request.path = ResourcePath(resource, name, subresource);
  call.request.headers.push_back({"Accept", kJson});
  return call;
}

void SetBody(HttpRequest& request, const char* content_type, const Json& body) {
  request.headers.push_back({"Content-Type", content_type});
  request.body = Text(body);
}

}  // namespace

struct Client::Impl {
  ClientConfig config;
  ClientOptions options;
  std::unique_ptr<rest_client::RestClient> http;
  std::mutex mutex;
  std::condition_variable wake;
  bool cancelled = false;

  // Waits; false if cancelled meanwhile.
  bool Wait(Duration duration) {
    std::unique_lock lock(mutex);
    return !wake.wait_for(lock, duration, [this] { return cancelled; });
  }

  // Adds the credential, sends by `send`, which says the status, and once more with a new one after
  // a 401.
  template <typename Answer, typename Send>
  ApiResult<Answer> Authorized(const Call& call, const Send& send) {
    for (int attempt = 0;; ++attempt) {
      HttpRequest request = call.request;
      std::string token;
      if (config.credentials) {
        const Result<Credential> credential = config.credentials->Get();
        if (!credential.ok()) return ApiErrorOf(credential.error().With(call.about));
        token = credential->token;
      }
      if (!token.empty()) request.headers.push_back({"Authorization", "Bearer " + token});
      const auto begun = Steady::now();
      int status = 0;
      ApiResult<Answer> answer = send(std::move(request), status);
      if (options.on_request) {
        options.on_request({call.verb, call.resource, status,
                            std::chrono::duration_cast<Duration>(Steady::now() - begun)});
      }
      if (status != 401 || attempt > 0 || !config.credentials) return answer;
      config.credentials->Refused(token);
    }
  }

  ApiResult<std::string> SendOnce(const Call& call, Duration timeout) {
    const auto send = [&](HttpRequest request, int& status) -> ApiResult<std::string> {
      Result<HttpResponse> response = http->Send(std::move(request), timeout);
      if (!response.ok()) return ApiErrorOf(response.error().With(call.about));
      status = response->status;
      if (status / 100 != 2) return ApiErrorOf(*response, call.about);
      return std::move(response->body);
    };
    return Authorized<std::string>(call, send);
  }

  ApiResult<std::string> Send(const Call& call, const CallOptions& options_of_call) {
    const auto limit = Steady::now() + options_of_call.timeout;
    for (int retry = 0;; ++retry) {
      const auto left = std::chrono::duration_cast<Duration>(limit - Steady::now());
      ApiResult<std::string> answer = SendOnce(call, std::max(left, Duration(0)));
      if (answer.ok() || retry >= options_of_call.retries) return answer;
      const ApiError& error = answer.error();
      const bool waits = (error.status == 429 || error.status == 503) && error.retry_after;
      if (!waits || Steady::now() + *error.retry_after >= limit) return answer;
      if (!Wait(*error.retry_after)) return answer;
    }
  }

  ApiResult<Json> SendForObject(const Call& call, const CallOptions& options_of_call) {
    const ApiResult<std::string> body = Send(call, options_of_call);
    if (!body.ok()) return body.error();
    std::optional<Json> object = ParseJson(*body);
    if (!object || !object->is_object()) {
      ApiError error;
      error.message = call.about + ": the answer is not a JSON object: " + Printable(*body, 200);
      return error;
    }
    return std::move(*object);
  }
};

Result<std::unique_ptr<Client>> Client::Make(ClientConfig config, ClientOptions options) {
  auto impl = std::make_unique<Impl>();
  rest_client::RestClientOptions http;
  http.base_url = config.server;
  http.verify_host = config.verify_host;
  http.user_agent = options.user_agent;
  http.max_response_bytes = kMaxResponse;
  http.tls = [ca = config.ca_pem, credentials = config.credentials] {
    rest_client::RestTls tls;
    if (ca) tls.ca = ca();
    // On the thread of all connections, which must not wait; each call has asked for it before.
    if (credentials) {
      Credential credential = credentials->Latest();
      tls.certificate = std::move(credential.certificate_pem);
      tls.key = std::move(credential.key_pem);
    }
    return tls;
  };
  Result<std::unique_ptr<rest_client::RestClient>> made =
      rest_client::RestClient::Make(std::move(http));
  if (!made.ok()) return made.error().With(config.source);
  impl->http = std::move(*made);
  impl->config = std::move(config);
  impl->options = std::move(options);
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Client::~Client() { Cancel(); }

void Client::Cancel() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->cancelled = true;
  }
  impl_->wake.notify_all();
  impl_->http->Cancel();
}

const ClientConfig& Client::config() const { return impl_->config; }
const ClientOptions& Client::options() const { return impl_->options; }

ApiResult<Json> Client::Get(const Resource& resource, const ObjectName& name,
                            const CallOptions& options, bool metadata_only) {
  Call call = MakeCall("get", resource, name, "GET");
  if (name.name.empty()) return Invalid(call.about, "an object needs a name");
  if (metadata_only) call.request.headers[0].value = kMetadata;
  return impl_->SendForObject(call, options);
}

ApiResult<ListPage> Client::List(const Resource& resource, const std::string& name_space,
                                 const ListOptions& list, const CallOptions& options) {
  Call call = MakeCall("list", resource, {name_space, ""}, "GET");
  if (list.metadata_only) call.request.headers[0].value = kMetadataList;
  std::string& query = call.request.query;
  AddQuery(query, "labelSelector", list.label_selector);
  AddQuery(query, "fieldSelector", list.field_selector);
  AddQuery(query, "resourceVersion", list.resource_version);
  AddQuery(query, "resourceVersionMatch", list.resource_version_match);
  if (list.limit > 0) AddQuery(query, "limit", std::to_string(list.limit));
  AddQuery(query, "continue", list.continue_token);
  ApiResult<Json> answer = impl_->SendForObject(call, options);
  if (!answer.ok()) return answer.error();
  ListPage page;
  page.resource_version = TextAt(*answer, "/metadata/resourceVersion");
  page.continue_token = TextAt(*answer, "/metadata/continue");
  const auto items = answer->find("items");
  if (items != answer->end() && items->is_array()) {
    page.items.reserve(items->size());
    for (Json& item : *items) page.items.push_back(std::move(item));
  } else if (items == answer->end() || !items->is_null()) {
    return Invalid(call.about, "the answer is not a list");
  }
  return page;
}

ApiResult<Json> Client::Create(const Resource& resource, const Json& object,
                               const CallOptions& options) {
  const ObjectName name = NameOf(object);
  Call call = MakeCall("create", resource, name, "POST");
  call.request.path = ResourcePath(resource, {name.name_space, ""});
  AddQuery(call.request.query, "fieldManager", impl_->options.field_manager);
  AddQuery(call.request.query, "fieldValidation", "Strict");
  SetBody(call.request, kJson, object);
  return impl_->SendForObject(call, options);
}

ApiResult<Json> Client::Update(const Resource& resource, const Json& object,
                               const CallOptions& options) {
  const ObjectName name = NameOf(object);
  Call call = MakeCall("update", resource, name, "PUT");
  if (name.name.empty()) return Invalid(call.about, "an object needs a name");
  if (TextAt(object, "/metadata/resourceVersion").empty()) {
    return Invalid(call.about, "an update needs metadata.resourceVersion");
  }
  AddQuery(call.request.query, "fieldManager", impl_->options.field_manager);
  AddQuery(call.request.query, "fieldValidation", "Strict");
  SetBody(call.request, kJson, object);
  return impl_->SendForObject(call, options);
}

ApiResult<Json> Client::Apply(const Resource& resource, const Json& object,
                              const ApplyOptions& apply, const CallOptions& options) {
  const ObjectName name = NameOf(object);
  Call call = MakeCall("apply", resource, name, "PATCH", apply.subresource);
  if (name.name.empty()) return Invalid(call.about, "an object needs a name");
  AddQuery(call.request.query, "fieldManager", impl_->options.field_manager);
  AddQuery(call.request.query, "force", apply.force ? "true" : "");
  AddQuery(call.request.query, "fieldValidation", "Strict");
  SetBody(call.request, "application/apply-patch+yaml", object);  // JSON is YAML
  return impl_->SendForObject(call, options);
}

ApiResult<Json> Client::ApplyStatus(const Resource& resource, Json object,
                                    const std::string& resource_version,
                                    const CallOptions& options) {
  if (NameOf(object).name.empty()) return Invalid("apply status", "an object needs a name");
  object["metadata"]["resourceVersion"] = resource_version;
  return Apply(resource, object, {true, "status"}, options);
}

ApiResult<Json> Client::Patch(const Resource& resource, const ObjectName& name, PatchKind kind,
                              const Json& patch, const std::string& subresource,
                              const CallOptions& options) {
  Call call = MakeCall("patch", resource, name, "PATCH", subresource);
  if (name.name.empty()) return Invalid(call.about, "an object needs a name");
  AddQuery(call.request.query, "fieldManager", impl_->options.field_manager);
  AddQuery(call.request.query, "fieldValidation", "Strict");
  SetBody(
      call.request,
      kind == PatchKind::kMerge ? "application/merge-patch+json" : "application/json-patch+json",
      patch);
  return impl_->SendForObject(call, options);
}

ApiResult<Json> Client::Delete(const Resource& resource, const ObjectName& name,
                               const DeleteOptions& remove, const CallOptions& options) {
  Call call = MakeCall("delete", resource, name, "DELETE");
  if (name.name.empty()) return Invalid(call.about, "an object needs a name");
  Json body = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}};
  if (!remove.uid.empty()) body["preconditions"]["uid"] = remove.uid;
  if (!remove.resource_version.empty()) {
    body["preconditions"]["resourceVersion"] = remove.resource_version;
  }
  if (!remove.propagation.empty()) body["propagationPolicy"] = remove.propagation;
  if (remove.grace_seconds >= 0) body["gracePeriodSeconds"] = remove.grace_seconds;
  SetBody(call.request, kJson, body);
  return impl_->SendForObject(call, options);
}

ApiResult<std::string> Client::GetRaw(const std::string& path_and_query,
                                      const CallOptions& options) {
  Call call;
  call.verb = "get";
  call.resource = "raw";
  call.about = "get " + Printable(path_and_query, 200);
  const size_t mark = path_and_query.find('?');
  call.request.path = path_and_query.substr(0, mark);
  if (mark != std::string::npos) call.request.query = path_and_query.substr(mark + 1);
  call.request.headers.push_back({"Accept", kJson});
  return impl_->Send(call, options);
}

ApiResult<std::unique_ptr<EventSource>> Client::Watch(const Resource& resource,
                                                      const std::string& name_space,
                                                      const std::string& query,
                                                      Duration silence_timeout,
                                                      bool metadata_only) {
  Call call = MakeCall("watch", resource, {name_space, ""}, "GET");
  call.request.query = query;
  if (metadata_only) call.request.headers[0].value = kMetadata;
  using Source = std::unique_ptr<EventSource>;
  return impl_->Authorized<Source>(
      call, [&](HttpRequest request, int& status) -> ApiResult<Source> {
        Result<std::unique_ptr<rest_client::RestStream>> stream =
            impl_->http->Open(std::move(request), kWatchHeaders);
        if (!stream.ok()) return ApiErrorOf(stream.error().With(call.about));
        status = (*stream)->head().status;
        if (status / 100 == 2) {
          return Source(
              std::make_unique<WatchStream>(std::move(*stream), call.about, silence_timeout));
        }
        HttpResponse response = (*stream)->head();
        constexpr size_t kMaxStatus = 64 * 1024;
        while (response.body.size() < kMaxStatus) {
          const Result<size_t> more = (*stream)->Read(response.body, kWatchHeaders);
          if (!more.ok() || *more == 0) break;
        }
        return ApiErrorOf(response, call.about);
      });
}

}  // namespace parallelrun::kube
