#include "coordinator/http_calls.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/escape.h"
#include "base/http/target.h"
#include "base/json.h"
#include "base/version.h"
#include "coordinator/access.h"
#include "coordinator/control.h"
#include "coordinator/progress.h"
#include "job/node_messages.h"
#include "job/side_inputs.h"
#include "job/side_uploads.h"

namespace parallelrun::coordinator {
namespace {

using nlohmann::json;

constexpr size_t kTextLimit = 256;
// As for a start that does not go on: whoever watches the probe starts this program again.
constexpr Duration kUnseenLimit = std::chrono::minutes(30);

int StatusOf(Code code) {
  switch (code) {
    case Code::kInvalid: return 400;
    case Code::kPermission: return 403;
    case Code::kNotFound: return 404;
    case Code::kStale: return 409;
    case Code::kUnavailable:
    case Code::kNoSpace: return 503;
    default: return 500;
  }
}

HttpResponse Refusal(const Error& error) {
  return ErrorResponse(StatusOf(error.code), CodeName(error.code), error.message);
}

Error RegisterAgain(uint32_t node) {
  return {Code::kStale,
          fmt::format("node {} sent what is not of this coordinator: register again", node)};
}

Error NoRoomForLogs() {
  return {Code::kUnavailable, "earlier uploads of logs are not written yet: try again later"};
}

std::string Text(const json& object, const char* key) {
  return lenient::Text(object, key).substr(0, kTextLimit);
}

// A parameter of the query; nullopt for what is none.
std::optional<uint64_t> Number(const HttpRequest& request, const char* name) {
  const std::string digits = QueryParameter(request.query, name).value_or("");
  const bool number = !digits.empty() && digits.size() <= 15 &&
                      digits.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::optional<uint64_t>(std::stoull(digits)) : std::nullopt;
}

HttpResponse NeedsNumber(const char* name, const char* what) {
  return ErrorResponse(400, "Invalid", fmt::format("the query needs {}=N, a {}", name, what));
}

}  // namespace

HttpCalls::HttpCalls(Options options, Coordinator& coordinator, LogWriter& logs, EventLoop& loop,
                     const SystemClock& clock, std::function<std::string()> progress,
                     std::function<std::string(uint64_t after)> failures)
    : options_(std::move(options)),
      coordinator_(coordinator),
      logs_(logs),
      loop_(loop),
      clock_(clock),
      progress_(std::move(progress)),
      failures_(std::move(failures)),
      heard_at_(clock.Now()) {}

void HttpCalls::Handle(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  if (HandlePublic(exchange)) return;
  const Result<std::vector<std::string>> path = PathSegments(request.path);
  if (!path.ok()) return exchange->Respond(Refusal(path.error()));
  const std::vector<std::string>& s = *path;
  if (request.path.starts_with("/v1/")) heard_at_ = Now();
  if (s.size() >= 4 && s[0] == "v1" && s[1] == "nodes") {
    const uint32_t node = static_cast<uint32_t>(std::stoul(s[2]));  // digits: the gate saw to it
    return HandleNode(exchange, node, s);
  }
  if (request.method == "GET" && request.path == "/v1/progress") {
    return exchange->Respond(JsonResponse(200, progress_()));
  }
  if (request.method == "GET" && request.path == "/v1/failures") {
    const std::optional<uint64_t> after = Number(request, "after");
    if (!after) return exchange->Respond(NeedsNumber("after", "number of a failed attempt"));
    HttpResponse response = TextResponse(200, failures_(*after));
    response.content_type = "application/jsonl";
    return exchange->Respond(std::move(response));
  }
  if (request.method == "PUT" && request.path == "/v1/control") {
    return exchange->Respond(Control(request.body));
  }
  exchange->Respond(
      ErrorResponse(404, "NotFound",
                    "there is nothing at " + request.method + " " + Printable(request.path, 200)));
}

bool HttpCalls::HandlePublic(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  if (request.method != "GET") return false;
  if (request.path == "/healthz" || request.path == "/readyz") {
    const Duration unseen = Now() - coordinator_.newest().looked_at();
    const bool lives = unseen < kUnseenLimit;
    exchange->Respond(lives ? TextResponse(200, "ok\n")
                            : TextResponse(503, fmt::format("the state folder could not be looked "
                                                            "at for {}: does its volume hang?\n",
                                                            HumanDuration(unseen))));
    return true;
  }
  if (request.path != "/metrics") return false;
  HttpResponse response = TextResponse(200, Metrics(coordinator_, options_.epoch));
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  exchange->Respond(std::move(response));
  return true;
}

void HttpCalls::HandleNode(const std::shared_ptr<HttpExchange>& exchange, uint32_t node,
                           const std::vector<std::string>& path) {
  const HttpRequest& request = exchange->request();
  const std::string& call = path[3];
  if (request.method == "POST" && path.size() == 4) {
    if (call == "exchange") return Exchange(exchange, node);
    if (call == "register") return exchange->Respond(Register(node, request.body));
    if (call == "side-input-urls") return SideUrls(exchange);
    if (call == "side-files") return SideFiles(exchange, node);
    if (call == "leave") return exchange->Respond(Leave(node, request.body));
  }
  if (request.method == "PUT" && call == "logs") {
    return WriteLog(exchange, node, path);
  }
  exchange->Respond(ErrorResponse(
      404, "NotFound", "nodes have no call " + request.method + " " + Printable(call, 50)));
}

HttpResponse HttpCalls::Register(uint32_t node, const std::string& body) {
  const std::optional<json> request = ParseObject(body);
  if (!request) return ErrorResponse(400, "Invalid", "the body of register is not a JSON object");
  if (const uint64_t theirs = lenient::Unsigned(*request, "protocol");
      theirs != job::kNodeProtocol) {
    const std::string release = Text(*request, "release");
    return ErrorResponse(
        400, "Invalid",
        fmt::format("this agent speaks protocol {}, its coordinator protocol {}: they are of "
                    "different releases of ParallelRun, {} and {}; start the older one again (on a "
                    "cluster, delete its pod)",
                    theirs, job::kNodeProtocol,
                    release.empty() ? "one that does not say" : Printable(release, 40), kVersion));
  }
  const std::string run_id = fmt::format("{:016x}", options_.run_id);
  const std::string theirs = Text(*request, "runId");
  if (!theirs.empty() && theirs != run_id) {
    return ErrorResponse(
        409, "Stale",
        "the agent belongs to run " + Printable(theirs, 40) + ", this is run " + run_id);
  }
  const auto processes =
      static_cast<uint32_t>(std::min<uint64_t>(lenient::Unsigned(*request, "processes"), 4096));
  const std::string host = Text(*request, "host");
  const std::string agent =
      fmt::format("{}:{}:{}", host, lenient::Unsigned(*request, "pid"), Text(*request, "instance"));
  const uint64_t pod = lenient::Unsigned(*request, "pod");
  if (coordinator_.nodes().Superseded(node, agent, pod)) {
    return ErrorResponse(409, "Stale",
                         fmt::format("another agent has taken the place of node {}'s on {}: this "
                                     "one ends",
                                     node, Printable(host, 100)));
  }
  if (coordinator_.HasToWait(node, agent, pod, Now())) {
    return ErrorResponse(503, "Unavailable",
                         fmt::format("pod {} of node {} is at its last mini-batches: the next one "
                                     "registers when they have ended, or after a minute",
                                     coordinator_.nodes().Find(node)->pod, node));
  }
  const NodeRegistration registration = coordinator_.Register(
      node, agent, processes > 0 ? processes : options_.limits.processes, Now(), pod);
  json answer;
  answer["runId"] = run_id;
  answer["epoch"] = registration.incarnation.epoch;
  answer["incarnation"] = registration.incarnation.number;
  answer["settingsDigest"] = fmt::format("{:016x}", options_.limits.settings_digest);
  answer["firstProcess"] = registration.first_process;
  answer["leaseSeconds"] = std::chrono::floor<seconds>(options_.limits.lease).count();
  answer["job"] = ParseJson(options_.agent_job).value_or(nullptr);
  return JsonResponse(200, answer.dump() + "\n");
}

HttpResponse HttpCalls::Leave(uint32_t node, const std::string& body) {
  const std::optional<json> request = ParseObject(body);
  if (!request) return ErrorResponse(400, "Invalid", "the body of leave is not a JSON object");
  const json& stray = lenient::AtPath(*request, "/strayFiles");
  stray_.Count(lenient::Unsigned(stray, "count"));
  for (const json& name : lenient::List(stray, "first")) {
    if (name.is_string()) stray_.Add(name.get<std::string>());
  }
  coordinator_.Leave(node,
                     {static_cast<uint32_t>(lenient::Unsigned(*request, "epoch")),
                      static_cast<uint32_t>(lenient::Unsigned(*request, "incarnation"))},
                     Now());
  return JsonResponse(200, "{}\n");
}

void HttpCalls::Exchange(const std::shared_ptr<HttpExchange>& exchange, uint32_t node) {
  const Result<job::ExchangeRequest> request = job::DecodeExchangeRequest(exchange->request().body);
  if (!request.ok()) {
    const bool known =
        coordinator_.nodes().InForce(node, job::IncarnationOf(exchange->request().body));
    return exchange->Respond(known ? Refusal(request.error()) : Refusal(RegisterAgain(node)));
  }
  const auto send = [exchange](std::string bytes) {
    HttpResponse response;
    response.content_type = "application/octet-stream";
    response.body = std::move(bytes);
    exchange->Respond(std::move(response));
  };
  const auto answer = [exchange, send, urls = options_.urls,
                       held = request->held](const Result<job::ExchangeReply>& reply) {
    if (!reply.ok()) return exchange->Respond(Refusal(reply.error()));
    if (urls == nullptr) return send(job::Encode(*reply));
    urls->Answer(held, *reply, send);
  };
  const uint64_t name = coordinator_.Exchange(node, *request, Now(), answer);
  exchange->OnGone([this, name] { coordinator_.ConnectionGone(name, Now()); });
}

void HttpCalls::SideUrls(const std::shared_ptr<HttpExchange>& exchange) {
  const auto wanted = job::ParseSideUrlsWanted(exchange->request().body);
  if (!wanted.ok()) return exchange->Respond(Refusal(wanted.error()));
  if (options_.urls == nullptr) {
    return exchange->Respond(
        ErrorResponse(404, "NotFound", "nodes read side inputs of this job by keys of their own"));
  }
  options_.urls->AnswerSide(*wanted, [exchange](const Result<job::SideUrls>& urls) {
    exchange->Respond(urls.ok() ? JsonResponse(200, job::SideUrlsText(*urls) + "\n")
                                : Refusal(urls.error()));
  });
}

void HttpCalls::SideFiles(const std::shared_ptr<HttpExchange>& exchange, uint32_t node) {
  Result<job::SideUploadsWanted> wanted = job::ParseSideUploadsWanted(exchange->request().body);
  if (!wanted.ok()) return exchange->Respond(Refusal(wanted.error()));
  if (options_.side_uploads == nullptr) {
    return exchange->Respond(
        ErrorResponse(404, "NotFound", "side files of this job do not go to a store"));
  }
  const std::vector<job::Held> held = coordinator_.availability().HeldBy(node);
  if (std::none_of(held.begin(), held.end(),
                   [&wanted](const job::Held& one) { return one.id == wanted->mini_batch; })) {
    return exchange->Respond(
        Refusal({Code::kStale, fmt::format("node {} does not hold mini-batch {}", node,
                                           job::MiniBatchText(wanted->mini_batch))}));
  }
  options_.side_uploads->Answer(
      std::move(*wanted),
      [this](job::BatchId id) { return coordinator_.availability().Leased(id); },
      [exchange](const Result<job::SideUploads>& uploads) {
        exchange->Respond(uploads.ok() ? JsonResponse(200, job::SideUploadsText(*uploads) + "\n")
                                       : Refusal(uploads.error()));
      });
}

std::optional<HttpResponse> HttpCalls::RefuseEarly(const HttpRequest& request) const {
  if (request.method != "PUT") return std::nullopt;
  const Result<std::vector<std::string>> path = PathSegments(request.path);
  if (!path.ok() || path->size() < 4 || (*path)[1] != "nodes" || (*path)[3] != "logs") {
    return std::nullopt;
  }
  const auto node = static_cast<uint32_t>(std::stoul((*path)[2]));  // digits: the gate saw to it
  if (logs_.HasRoom(node)) return std::nullopt;
  return Refusal(NoRoomForLogs());
}

void HttpCalls::WriteLog(const std::shared_ptr<HttpExchange>& exchange, uint32_t node,
                         const std::vector<std::string>& path) {
  HttpRequest& request = exchange->request();
  const std::optional<uint64_t> offset = Number(request, "offset");
  if (!offset) return exchange->Respond(NeedsNumber("offset", "number of bytes"));
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  const uint64_t number = ++last_upload_;
  LogWriter::Upload upload;
  upload.node = node;
  upload.path = {path.begin() + 4, path.end()};
  upload.offset = *offset;
  upload.truncate = QueryParameter(request.query, "truncate").value_or("") == "true";
  upload.bytes = std::move(request.body);
  upload.given_up = [gone] { return gone->load(); };
  upload.done = [this, number](const Status& written) {
    loop_.Post([this, number, written] {
      const auto found = uploads_.find(number);
      found->second->Respond(written.ok() ? JsonResponse(200, "{}\n") : Refusal(written.error()));
      uploads_.erase(found);
    });
  };
  exchange->OnGone([gone] { *gone = true; });
  uploads_[number] = exchange;
  if (logs_.Write(std::move(upload))) return;
  uploads_.erase(number);
  exchange->Respond(Refusal(NoRoomForLogs()));
}

HttpResponse HttpCalls::Control(const std::string& body) {
  const Result<ControlRequest> control = ParseControl(body);
  if (!control.ok()) return Refusal(control.error());
  coordinator_.Control(*control, Now());
  return JsonResponse(200, progress_());
}

}  // namespace parallelrun::coordinator
