#include "coordinator/server.h"

#include <spdlog/spdlog.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/http_target.h"
#include "coordinator/access.h"
#include "coordinator/batch_report.h"
#include "coordinator/control.h"
#include "coordinator/dead_letters.h"
#include "coordinator/progress.h"
#include "coordinator/reports.h"

namespace parallelrun {
namespace {

using nlohmann::json;

constexpr Duration kTick = milliseconds(200);
constexpr Duration kOverviewInterval = seconds(10);
constexpr Duration kDiskFullRetry = seconds(1);
constexpr size_t kChunksOnTheWay = 8;  // bounds what the planner may be ahead of the ledger
constexpr size_t kTextLimit = 256;

HttpResponse JsonResponse(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.content_type = "application/json";
  response.body = std::move(body);
  return response;
}

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

// A JSON object of a body that is bounded already; nullopt for anything else.
std::optional<json> ParseObject(const std::string& body) {
  json value = json::parse(body, nullptr, false);
  if (!value.is_object()) return std::nullopt;
  return value;
}

uint64_t Number(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_unsigned() ? found->get<uint64_t>() : 0;
}

std::string Text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string()
             ? found->get<std::string>().substr(0, kTextLimit)
             : "";
}

}  // namespace

CoordinatorServer::CoordinatorServer(ServerOptions options, Files& files, Ledger& ledger,
                                     JobState& state, LogSink logs)
    : options_(std::move(options)),
      files_(files),
      ledger_(ledger),
      state_(state),
      logs_(std::move(logs)),
      metrics_(options_.log_folder),
      plan_(ledger),
      coordinator_(options_.coordinator, ledger, plan_, state, clock_.Now()),
      started_(clock_.WallNow()) {}

CoordinatorServer::~CoordinatorServer() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  planning_.request_stop();
  wake_.notify_all();
  for (std::thread* thread : {&planner_, &flusher_, &publisher_}) {
    if (thread->joinable()) thread->join();
  }
}

Status CoordinatorServer::Listen() {
  Result<std::unique_ptr<HttpServer>> http = HttpServer::Start(
      loop_, options_.http,
      [this](const HttpRequest& request) { return Admit(request, options_.key); },
      [this](const std::shared_ptr<HttpExchange>& exchange) {
        Handle(exchange);
        AfterEvent();
      });
  if (!http.ok()) return http.error();
  http_ = std::move(*http);
  if (!options_.metrics_http) return {};
  Result<std::unique_ptr<HttpServer>> metrics = HttpServer::Start(
      loop_, *options_.metrics_http,
      [](const HttpRequest&) -> std::variant<size_t, HttpResponse> { return size_t{0}; },
      [this](const std::shared_ptr<HttpExchange>& exchange) {
        if (HandlePublic(exchange)) return;
        exchange->Respond(ErrorResponse(404, "NotFound", "only /metrics, /healthz and /readyz"));
      });
  if (!metrics.ok()) return metrics.error();
  metrics_http_ = std::move(*metrics);
  return {};
}

Result<CoordinatorExit> CoordinatorServer::Run() {
  if (const Status listening = Listen(); !listening.ok()) return listening.error();
  // Whoever ends this process starts the next epoch, which the agents wait for: they are not
  // drained. A verdict that is durable is still brought to its end.
  const auto hand_over = [this] {
    const Coordinator::Phase phase = coordinator_.phase();
    if (phase != Coordinator::Phase::kRunning && phase != Coordinator::Phase::kDraining) return;
    End(CoordinatorExit::kDrained, "ended by a signal: the next epoch goes on");
  };
  loop_.OnSignal(SIGTERM, hand_over);
  loop_.OnSignal(SIGINT, hand_over);
  flusher_ = std::thread([this] { FlushLoop(); });
  StartPlanning();
  loop_.Post([this] { Tick(); });
  loop_.Run();
  return exit_;
}

// --- requests

void CoordinatorServer::Handle(const std::shared_ptr<HttpExchange>& exchange) {
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
    return exchange->Respond(JsonResponse(200, Progress()));
  }
  if (request.method == "PUT" && request.path == "/v1/control") {
    return exchange->Respond(Control(request.body));
  }
  exchange->Respond(
      ErrorResponse(404, "NotFound",
                    "there is nothing at " + request.method + " " + Printable(request.path, 200)));
}

bool CoordinatorServer::HandlePublic(const std::shared_ptr<HttpExchange>& exchange) {
  const HttpRequest& request = exchange->request();
  if (request.method != "GET") return false;
  if (request.path == "/healthz" || request.path == "/readyz") {
    exchange->Respond(TextResponse(200, "ok\n"));
    return true;
  }
  if (request.path != "/metrics") return false;
  HttpResponse response = TextResponse(200, Metrics(coordinator_, ledger_.epoch()));
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  exchange->Respond(std::move(response));
  return true;
}

void CoordinatorServer::HandleNode(const std::shared_ptr<HttpExchange>& exchange, uint32_t node,
                                   const std::vector<std::string>& path) {
  const HttpRequest& request = exchange->request();
  const std::string& call = path[3];
  if (request.method == "POST" && path.size() == 4) {
    if (call == "exchange") return ExchangeWithNode(exchange, node);
    if (call == "register") return exchange->Respond(RegisterNode(node, request.body));
    if (call == "leave") return exchange->Respond(Leave(node, request.body));
  }
  if (request.method == "PUT" && call == "logs") {
    return exchange->Respond(WriteLog(node, request, path));
  }
  exchange->Respond(ErrorResponse(
      404, "NotFound", "nodes have no call " + request.method + " " + Printable(call, 50)));
}

HttpResponse CoordinatorServer::RegisterNode(uint32_t node, const std::string& body) {
  const std::optional<json> request = ParseObject(body);
  if (!request) return ErrorResponse(400, "Invalid", "the body of register is not a JSON object");
  if (Number(*request, "protocol") != 1) {
    return ErrorResponse(400, "Invalid",
                         "this coordinator speaks protocol 1: use an agent of its release");
  }
  const std::string run_id = fmt::format("{:016x}", ledger_.run_id());
  const std::string theirs = Text(*request, "runId");
  if (!theirs.empty() && theirs != run_id) {
    return ErrorResponse(
        409, "Stale",
        "the agent belongs to run " + Printable(theirs, 40) + ", this is run " + run_id);
  }
  const auto processes =
      static_cast<uint32_t>(std::min<uint64_t>(Number(*request, "processes"), 4096));
  const std::string host = Text(*request, "host");
  const std::string agent =
      fmt::format("{}:{}:{}", host, Number(*request, "pid"), Text(*request, "instance"));
  const uint64_t pod = Number(*request, "pod");
  if (coordinator_.Superseded(node, agent, pod)) {
    return ErrorResponse(409, "Stale",
                         fmt::format("another agent has taken the place of node {}'s on {}: this "
                                     "one ends",
                                     node, Printable(host, 100)));
  }
  const NodeRegistration registration = coordinator_.Register(
      node, agent, processes > 0 ? processes : options_.coordinator.processes, Now(), pod);
  json answer;
  answer["runId"] = run_id;
  answer["epoch"] = registration.incarnation.epoch;
  answer["incarnation"] = registration.incarnation.number;
  answer["settingsDigest"] = fmt::format("{:016x}", options_.coordinator.settings_digest);
  answer["firstProcess"] = registration.first_process;
  answer["leaseSeconds"] = std::chrono::floor<seconds>(options_.coordinator.lease).count();
  answer["job"] = json::parse(options_.agent_job);
  return JsonResponse(200, answer.dump() + "\n");
}

HttpResponse CoordinatorServer::Leave(uint32_t node, const std::string& body) {
  const std::optional<json> request = ParseObject(body);
  if (!request) return ErrorResponse(400, "Invalid", "the body of leave is not a JSON object");
  coordinator_.Leave(node,
                     {static_cast<uint32_t>(Number(*request, "epoch")),
                      static_cast<uint32_t>(Number(*request, "incarnation"))},
                     Now());
  return JsonResponse(200, "{}\n");
}

void CoordinatorServer::ExchangeWithNode(const std::shared_ptr<HttpExchange>& exchange,
                                         uint32_t node) {
  const Result<ExchangeRequest> request = DecodeExchangeRequest(exchange->request().body);
  if (!request.ok()) return exchange->Respond(Refusal(request.error()));
  exchange->OnGone([this, node] { coordinator_.ConnectionGone(node, Now()); });
  coordinator_.Exchange(node, *request, Now(), [exchange](const Result<ExchangeReply>& reply) {
    if (!reply.ok()) return exchange->Respond(Refusal(reply.error()));
    HttpResponse response;
    response.content_type = "application/octet-stream";
    response.body = Encode(*reply);
    exchange->Respond(std::move(response));
  });
}

HttpResponse CoordinatorServer::WriteLog(uint32_t node, const HttpRequest& request,
                                         const std::vector<std::string>& path) {
  const std::string offset = QueryParameter(request.query, "offset").value_or("");
  if (offset.empty() || offset.size() > 15 ||
      offset.find_first_not_of("0123456789") != std::string::npos) {
    return ErrorResponse(400, "Invalid", "the query needs offset=N, a number of bytes");
  }
  const bool truncate = QueryParameter(request.query, "truncate").value_or("") == "true";
  const Status written = logs_.Write(node, {path.begin() + 4, path.end()}, std::stoull(offset),
                                     request.body, truncate);
  return written.ok() ? JsonResponse(200, "{}\n") : Refusal(written.error());
}

HttpResponse CoordinatorServer::Control(const std::string& body) {
  const Result<ControlRequest> control = ParseControl(body);
  if (!control.ok()) return Refusal(control.error());
  const uint64_t generation = control->generation.value_or(control_generation_);
  if (generation >= control_generation_) {
    control_generation_ = generation;
    coordinator_.SetThresholds(control->ChangedFrom(coordinator_.thresholds()), Now());
    if (control->nodes) coordinator_.SetNodes(*control->nodes, Now());
  }
  for (const PodEnd& end : control->pod_ends) coordinator_.OnPodEnd(end, Now());
  if (control->drain) coordinator_.Drain(Now());
  if (control->cancel) coordinator_.Cancel(Now());
  return JsonResponse(200, Progress());
}

// --- plan

void CoordinatorServer::StartPlanning() {
  if (state_.plan_ended() || coordinator_.phase() != Coordinator::Phase::kRunning) return;
  PlanCursor cursor;
  if (!state_.chunks().empty()) {
    const Result<std::string> last = ledger_.Read(state_.chunks().back().place);
    std::string_view bytes = last.ok() ? std::string_view(*last) : std::string_view();
    const Result<DecodedRecord> decoded = DecodeRecord(bytes);
    if (!decoded.ok()) return coordinator_.FailPlan(decoded.error(), Now());
    cursor = CursorAfter(std::get<PlanChunkRecord>(decoded->record), options_.inputs);
  }
  std::vector<PlanInput> inputs = options_.inputs;
  for (PlanInput& input : inputs) input.stop = planning_.get_token();
  planner_ =
      std::thread([this, planner = std::make_shared<Planner>(std::move(inputs), options_.forbidden,
                                                             cursor)] { PlanLoop(*planner); });
}

void CoordinatorServer::PlanLoop(Planner& planner) {
  for (;;) {
    Result<std::optional<std::string>> next = planner.Next();
    if (!next.ok()) {
      loop_.Post([this, error = next.error()] {
        coordinator_.FailPlan(error, Now());
        AfterEvent();
      });
      return;
    }
    if (!*next) break;
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stop_ || chunks_on_the_way_ < kChunksOnTheWay; });
    if (stop_) return;
    ++chunks_on_the_way_;
    lock.unlock();
    loop_.Post([this, chunk = std::move(**next)] {
      {
        const std::lock_guard taken(mutex_);
        --chunks_on_the_way_;
      }
      wake_.notify_all();
      if (const Status added = coordinator_.AddChunk(chunk, Now()); !added.ok()) {
        coordinator_.FailPlan(added.error(), Now());
      }
      AfterEvent();
    });
  }
  loop_.Post([this] {
    coordinator_.EndPlan(Now());
    AfterEvent();
  });
}

// --- ledger

void CoordinatorServer::FlushLoop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return flush_wanted_ || stop_; });
    if (!flush_wanted_) return;
    flush_wanted_ = false;
    lock.unlock();
    const Result<uint64_t> flushed = ledger_.Flush();
    loop_.Post([this, flushed] { OnFlushed(flushed); });
    lock.lock();
  }
}

void CoordinatorServer::OnFlushed(const Result<uint64_t>& flushed) {
  flushing_ = false;
  if (flushed.ok()) {
    coordinator_.Unpause();
    coordinator_.OnDurable(Now());
  } else if (flushed.error().code == Code::kNoSpace) {
    if (coordinator_.paused().empty()) {
      spdlog::error("paused: {}; free some space and the job goes on by itself",
                    flushed.error().message);
    }
    coordinator_.Pause(flushed.error().message);
    flushing_ = true;  // until the retry
    loop_.After(kDiskFullRetry, [this] {
      flushing_ = false;
      AfterEvent();
    });
  } else {
    // Linux forgets dirty pages after a failed sync: what is durable is known only by reading it
    // back, which the next epoch does.
    spdlog::error("the ledger cannot be written, this epoch ends: {}", flushed.error().message);
    return End(CoordinatorExit::kDiskFailed,
               "the ledger cannot be written: " + flushed.error().message);
  }
  AfterEvent();
}

// --- end

void CoordinatorServer::Publish() {
  publishing_ = true;
  if (publisher_.joinable()) publisher_.join();
  publisher_ = std::thread([this] {
    Result<Published> published =
        PublishOutput(files_, ledger_, state_, options_.order, options_.output_path);
    loop_.Post([this, published = std::move(published)] { OnPublished(published); });
  });
}

void CoordinatorServer::OnPublished(const Result<Published>& published) {
  if (published.ok()) {
    PublishedRecord record;
    record.path = published->path;
    record.bytes = published->bytes;
    record.rows = published->rows;
    record.sha256 = published->sha256;
    coordinator_.Unpause();
    coordinator_.OnPublished(record, Now());
    AfterEvent();
  } else if (published.error().code == Code::kStale) {
    spdlog::warn("superseded: {}", published.error().message);
    End(CoordinatorExit::kSuperseded, "superseded: " + published.error().message);
  } else if (published.error().code == Code::kNoSpace) {
    coordinator_.Pause(published.error().message);
    loop_.After(kDiskFullRetry, [this] {
      publishing_ = false;
      AfterEvent();
    });
  } else {
    spdlog::error("the output cannot be written: {}", published.error().message);
    End(CoordinatorExit::kDiskFailed, "the output cannot be written: " + published.error().message);
  }
}

std::string CoordinatorServer::Progress() const {
  return ProgressJson(coordinator_, ledger_.epoch(), control_generation_, started_,
                      metrics_.latest());
}

void CoordinatorServer::AfterEvent() {
  metrics_.Add(coordinator_.TakeMetrics());
  if (ending_) return;
  if (coordinator_.superseded()) {
    return End(CoordinatorExit::kSuperseded, "superseded by a newer epoch");
  }
  if (!flushing_ && ledger_.appended() > ledger_.durable()) {
    flushing_ = true;
    {
      const std::lock_guard lock(mutex_);
      flush_wanted_ = true;
    }
    wake_.notify_all();
  }
  switch (coordinator_.phase()) {
    case Coordinator::Phase::kFinalizing:
      if (options_.output_path.empty()) {
        coordinator_.OnNothingToPublish();
        return AfterEvent();
      }
      if (!publishing_) Publish();
      break;
    case Coordinator::Phase::kEnded: {
      if (ended_at_ == Instant()) ended_at_ = Now();
      const bool late = Now() - ended_at_ > options_.leave_limit;
      if (coordinator_.registered_nodes() == 0 || late) {
        End(state_.verdict()->outcome == Outcome::kSucceeded ? CoordinatorExit::kSucceeded
                                                             : CoordinatorExit::kFailed);
      }
      break;
    }
    case Coordinator::Phase::kDraining:
      if (coordinator_.registered_nodes() == 0 && ledger_.appended() == ledger_.durable()) {
        End(CoordinatorExit::kDrained, "drained by request");
      }
      break;
    default: break;
  }
}

void CoordinatorServer::Tick() {
  coordinator_.Tick(Now());
  if (coordinator_.registered_nodes() > 0) heard_at_ = Now();
  if (Now() - heard_at_ > options_.ownerless_limit) {
    const std::string because =
        fmt::format("no node was there and nobody called for {} (ownerlessSeconds)",
                    HumanDuration(options_.ownerless_limit));
    spdlog::warn("this epoch ends: {}", because);
    End(CoordinatorExit::kDrained, because);
  }
  if (Now() >= overview_at_) {
    overview_at_ = Now() + kOverviewInterval;
    WriteOverview();
  }
  AfterEvent();
  if (!ending_) loop_.After(kTick, [this] { Tick(); });
}

// Progress for people who read files: lost lines do no harm, so no sync and no error.
void CoordinatorServer::WriteOverview() {
  const WallTime now = clock_.WallNow();
  std::ofstream out(options_.log_folder + "/" + OverviewName(now), std::ios::app);
  out << OverviewLine(coordinator_, Now() - started_at_, now);
}

void CoordinatorServer::WriteLastReports() {
  for (const Status& written :
       {WriteReports(files_, state_, options_.log_folder),
        WriteBatchReports(files_, options_.state_folder, state_, options_.log_folder)}) {
    if (!written.ok()) spdlog::warn("the reports are not complete: {}", written.error().message);
  }
  if (!options_.dead_letters) return;
  const Status written =
      WriteDeadLetters(files_, options_.state_folder, state_, plan_, options_.log_folder);
  if (!written.ok()) spdlog::warn("dead-letter.jsonl: {}", written.error().message);
}

void CoordinatorServer::End(CoordinatorExit exit, const std::string& because) {
  if (ending_) return;
  ending_ = true;
  exit_ = exit;
  ended_because_ = because;
  WriteOverview();
  if (exit == CoordinatorExit::kSucceeded || exit == CoordinatorExit::kFailed) WriteLastReports();
  // A superseded coordinator's token is its successor's business.
  if (exit != CoordinatorExit::kSuperseded && !ledger_.token_path().empty()) {
    const Status removed = files_.Remove(ledger_.token_path());
    if (!removed.ok() && removed.error().code != Code::kNotFound) {
      spdlog::warn("{}", removed.error().message);
    }
  }
  coordinator_.Close({Code::kUnavailable, "the coordinator ends"});
  http_->Drain(seconds(2), [this] { loop_.Stop(); });
}

}  // namespace parallelrun
