#include "agent/agent.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "agent/agent_core.h"
#include "agent/code_copy.h"
#include "agent/exchange.h"
#include "agent/log_upload.h"
#include "agent/process.h"
#include "base/escape.h"

namespace parallelrun {
namespace {

constexpr Duration kCallTimeout = seconds(60);
constexpr Duration kLeaveTimeout = seconds(5);
constexpr Duration kLastLogs = seconds(10);
constexpr Duration kLastLogsLost = seconds(1);
constexpr Duration kMaxSleep = std::chrono::hours(1);
constexpr size_t kMaxShown = 1000;

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

CallFailure FailureOf(CallKind call, const Result<HttpResponse>& response) {
  if (!response) return CallFailure::kUnreachable;
  switch (response->status) {
    case 503: return CallFailure::kBusy;
    case 409: return call == CallKind::kRegister ? CallFailure::kRefused : CallFailure::kStale;
    case 400:
    case 401:
    case 403:
    case 404:
    case 413: return CallFailure::kRefused;
    default: return CallFailure::kUnreachable;
  }
}

Result<HttpClientOptions> ClientOptions(const AgentConfig& config) {
  HttpClientOptions options;
  options.base_url = config.url;
  options.token = [token = config.token] { return token; };
  options.user_agent = "parallelrun-agent/" PARALLELRUN_VERSION;
  if (!config.certificate_authority.empty()) {
    std::ifstream file(config.certificate_authority);
    std::stringstream pem;
    pem << file.rdbuf();
    if (!file || pem.str().empty()) {
      return Error{Code::kNotFound,
                   "cannot read the certificate authority " + config.certificate_authority};
    }
    options.ca_pem = pem.str();
  }
  return options;
}

class Agent {
 public:
  Agent(const AgentConfig& config, const AgentOptions& options, HttpClient& client)
      : config_(config),
        options_(options),
        report_(loop_, client),
        park_(loop_, client),
        core_(options, clock_.Now()) {}

  // Runs until there is an end.
  AgentEnd Run();
  const AgentCore& core() const { return core_; }
  const RegisterReply& registered() const { return registered_; }

 private:
  void OnSignal();
  void ReapAll();
  void SchedulePump();
  void Pump();
  void Perform(const Action& action);
  void StartProcess(const Action& action);
  bool OnFrame(uint32_t number, FrameType type, std::string_view body);
  void Call(CallKind call, const ExchangeRequest& request);
  void OnCalled(CallKind call, const Result<HttpResponse>& response);
  void OnRegisterAnswer(const HttpResponse& response);

  const AgentConfig& config_;
  const AgentOptions& options_;
  SystemClock clock_;
  EventLoop loop_;
  MemoryGroup memory_;
  ExchangeThread report_;
  ExchangeThread park_;
  AgentCore core_;
  RegisterReply registered_;
  const int gpus_ = CountGpus();
  std::map<uint32_t, std::unique_ptr<WorkerProcess>> processes_;
  std::vector<Action> actions_;
  ExchangeRequest request_;
  EventLoop::TimerId timer_ = EventLoop::TimerId::kNone;
  bool pump_scheduled_ = false;
  bool draining_ = false;
};

AgentEnd Agent::Run() {
  for (const int signo : {SIGTERM, SIGINT}) loop_.OnSignal(signo, [this] { OnSignal(); });
  loop_.OnSignal(SIGCHLD, [this] { ReapAll(); });
  SchedulePump();
  loop_.Run();
  return core_.end();
}

void Agent::OnSignal() {
  if (draining_) {
    spdlog::warn("stopping now");
    core_.StopNow(clock_.Now());
  } else {
    spdlog::info("draining: running mini-batches have {} to finish",
                 HumanDuration(options_.drain_grace));
    core_.Drain(options_.drain_grace, clock_.Now());
  }
  draining_ = true;
  SchedulePump();
}

void Agent::ReapAll() {
  for (auto it = processes_.begin(); it != processes_.end();) {
    const uint32_t number = it->first;
    const std::optional<std::string> words = it->second->Reap();
    if (!words) {
      ++it;
      continue;
    }
    core_.OnStatus(number, it->second->Status());
    core_.OnExited(number, *words, clock_.Now());
    spdlog::debug("{} {}", ProcessName(number), *words);
    it = processes_.erase(it);
  }
  SchedulePump();
}

// Once for all the events of a turn of the loop.
void Agent::SchedulePump() {
  if (pump_scheduled_) return;
  pump_scheduled_ = true;
  loop_.Post([this] { Pump(); });
}

void Agent::Pump() {
  pump_scheduled_ = false;
  for (const auto& [number, process] : processes_) core_.OnStatus(number, process->Status());
  const Instant now = clock_.Now();
  core_.Step(now);
  core_.TakeActions(actions_);
  for (const Action& action : actions_) Perform(action);
  for (const auto& [number, process] : processes_) {
    if (!process->out().empty()) process->Flush();
  }
  if (core_.end() != AgentEnd::kNone) return loop_.Stop();
  for (;;) {
    const CallKind call = core_.NextCall(now, request_);
    if (call == CallKind::kNone) break;
    Call(call, request_);
  }
  loop_.Cancel(timer_);
  timer_ = EventLoop::TimerId::kNone;
  const Instant wake = core_.WakeAt();
  if (wake == Instant::max()) return;
  timer_ = loop_.After(std::clamp<Duration>(wake - now, Duration(0), kMaxSleep),
                       [this] { SchedulePump(); });
}

void Agent::Perform(const Action& action) {
  if (action.kind == Action::Kind::kStart) return StartProcess(action);
  const auto it = processes_.find(action.process);
  if (it == processes_.end()) return;  // its end is about to be told
  switch (action.kind) {
    case Action::Kind::kGive:
      AppendBatchFrame(it->second->out(), action.sequence, action.work);
      break;
    case Action::Kind::kStop: AppendFrame(it->second->out(), FrameType::kStop, ""); break;
    case Action::Kind::kKill: it->second->Kill(); break;
    case Action::Kind::kStart: break;
  }
}

void Agent::StartProcess(const Action& action) {
  const uint32_t number = action.process;
  const std::string logs = config_.work_folder + "/logs/user/";
  const std::string own = std::to_string(config_.node) + "/" + ProcessName(number);
  ProcessSpec spec;
  spec.command = {registered_.job.python, "-m", "parallelrun.worker"};
  spec.environment =
      WorkerEnvironment(OwnEnvironment(), registered_.job, config_.python_path, gpus_, action.slot);
  spec.work_folder = config_.work_folder;
  spec.stdout_path = logs + "stdout/" + own + ".stdout.txt";
  spec.stderr_path = logs + "stderr/" + own + ".stderr.txt";
  Result<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(
      loop_, spec, memory_, [this, number](FrameType type, std::string_view body) {
        return OnFrame(number, type, body);
      });
  if (!process) {
    spdlog::error("{} cannot be started: {}", ProcessName(number), process.error().message);
    // Later, because the core is handing out actions now.
    loop_.Post([this, number, words = "could not be started: " + process.error().message] {
      core_.OnExited(number, words, clock_.Now());
      SchedulePump();
    });
    return;
  }
  AppendFrame((*process)->out(), FrameType::kStart,
              StartBody(registered_.job, config_.node, number));
  processes_.emplace(number, std::move(*process));
}

bool Agent::OnFrame(uint32_t number, FrameType type, std::string_view body) {
  SchedulePump();
  const Instant now = clock_.Now();
  switch (type) {
    case FrameType::kReady: return body.size() == sizeof(uint64_t) && core_.OnReady(number, now);
    case FrameType::kInitFailed: {
      std::optional<FailureText> failure = ParseFailure(body);
      if (!failure) return false;
      spdlog::error("{}: {}: {}", ProcessName(number), failure->kind, failure->message);
      core_.OnInitFailed(number, std::move(failure->message), failure->fatal, now);
      return true;
    }
    case FrameType::kResult: {
      const std::optional<ResultAnswer> answer = ParseResult(body);
      return answer && core_.OnResult(number, *answer, now);
    }
    case FrameType::kRows: {
      const std::optional<RowsFrame> frame = ParseRows(body);
      return frame && core_.OnRows(number, frame->sequence, frame->rows);
    }
    case FrameType::kFailed: {
      std::optional<FailedAnswer> answer = ParseFailed(body);
      return answer && core_.OnFailed(number, std::move(*answer), now);
    }
    case FrameType::kStopped:
      if (!body.empty()) {
        const std::optional<FailureText> failure = ParseFailure(body);
        if (!failure) return false;
        spdlog::warn("shutdown() of {} failed: {}", ProcessName(number), failure->message);
      }
      return true;
    default: return false;
  }
}

void Agent::Call(CallKind call, const ExchangeRequest& request) {
  HttpRequest http;
  http.method = "POST";
  http.path = "/v1/nodes/" + std::to_string(config_.node);
  Duration deadline = kCallTimeout;
  if (call == CallKind::kRegister) {
    http.path += "/register";
    const bool known = !registered_.run_id.empty();
    http.headers.push_back({"Content-Type", "application/json"});
    http.body = RegisterBody(registered_.run_id, known ? registered_.registration.processes : 0);
  } else {
    http.path += "/exchange";
    http.headers.push_back({"Content-Type", "application/octet-stream"});
    http.body = Encode(request);
    deadline += milliseconds(request.park_ms);
  }
  ExchangeThread& thread = call == CallKind::kPark ? park_ : report_;
  thread.Send(std::move(http), deadline, [this, call](const Result<HttpResponse>& response) {
    OnCalled(call, response);
    SchedulePump();
  });
}

void Agent::OnCalled(CallKind call, const Result<HttpResponse>& response) {
  const Instant now = clock_.Now();
  if (!response || response->status != 200) {
    const CallFailure failure = FailureOf(call, response);
    const std::string words =
        response ? std::to_string(response->status) + " " + Printable(response->body, kMaxShown)
                 : response.error().message;
    if (failure == CallFailure::kRefused) {
      spdlog::error("the coordinator refused this node: {}", words);
    } else {
      spdlog::info("the coordinator did not take a call: {}", words);
    }
    return core_.OnCallFailed(call, failure, now);
  }
  if (call == CallKind::kRegister) return OnRegisterAnswer(*response);
  const Result<ExchangeReply> reply = DecodeExchangeReply(response->body);
  if (!reply) {
    spdlog::error("{}", reply.error().message);
    return core_.OnCallFailed(call, CallFailure::kUnreachable, now);
  }
  core_.OnReply(call, *reply, now);
}

void Agent::OnRegisterAnswer(const HttpResponse& response) {
  const Instant now = clock_.Now();
  Result<RegisterReply> reply = ParseRegisterReply(response.body);
  if (!reply) {
    spdlog::error("{}", reply.error().message);
    return core_.OnCallFailed(CallKind::kRegister, CallFailure::kRefused, now);
  }
  if (const Status linked = LinkOutputs(config_.work_folder, reply->job.output_folder);
      !linked.ok()) {
    // The script may not need it.
    spdlog::warn("./outputs is not there: {}", linked.error().message);
  }
  registered_ = std::move(*reply);
  const Incarnation& incarnation = registered_.registration.incarnation;
  spdlog::info("registered with epoch {} as incarnation {}", incarnation.epoch, incarnation.number);
  core_.OnRegistered(registered_.registration, now);
}

const char* ReasonOf(AgentEnd end) {
  switch (end) {
    case AgentEnd::kFinished: return "finished";
    case AgentEnd::kDrained: return "drained";
    case AgentEnd::kGaveUp: return "gave up";
    default: return "lost";
  }
}

void Leave(HttpClient& client, uint32_t node, const Incarnation& incarnation, AgentEnd end) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/nodes/" + std::to_string(node) + "/leave";
  request.headers.push_back({"Content-Type", "application/json"});
  request.body = nlohmann::json{{"epoch", incarnation.epoch},
                                {"incarnation", incarnation.number},
                                {"reason", ReasonOf(end)}}
                     .dump();
  const Result<HttpResponse> response = client.Send(std::move(request), kLeaveTimeout);
  if (!response) spdlog::debug("leaving: {}", response.error().message);
}

}  // namespace

int RunAgent(const AgentConfig& config, const AgentOptions& options) {
  if (const Status copied = CopyCode(config.code_folder, config.work_folder); !copied.ok()) {
    spdlog::error("{}", copied.error().message);
    return kAgentCannotStart;
  }
  const Result<HttpClientOptions> client_options = ClientOptions(config);
  if (!client_options) {
    spdlog::error("{}", client_options.error().message);
    return kAgentCannotStart;
  }
  Result<std::unique_ptr<HttpClient>> client = HttpClient::Make(*client_options);
  Result<std::unique_ptr<HttpClient>> log_client = HttpClient::Make(*client_options);
  if (!client || !log_client) {
    spdlog::error("{}", (client ? log_client : client).error().message);
    return kAgentCannotStart;
  }
  LogUploader logs(config.work_folder + "/logs", config.node, std::move(*log_client));
  AgentEnd end = AgentEnd::kNone;
  Incarnation incarnation;
  {
    Agent agent(config, options, **client);
    end = agent.Run();
    incarnation = agent.registered().registration.incarnation;
    if (!agent.core().end_message().empty()) {
      spdlog::error("{}", Printable(agent.core().end_message(), kMaxShown));
    }
    (*client)->Cancel();  // a parked call ends now; the agent waits for it
  }
  if (incarnation.epoch != 0) {
    const bool complete = logs.Finish(end == AgentEnd::kLost ? kLastLogsLost : kLastLogs);
    if (!complete) spdlog::warn("not all logs were uploaded");
    // The first client is cancelled for good.
    const Result<std::unique_ptr<HttpClient>> last = HttpClient::Make(*client_options);
    if (last && end != AgentEnd::kLost) Leave(**last, config.node, incarnation, end);
  }
  switch (end) {
    case AgentEnd::kFinished: return kAgentFinished;
    case AgentEnd::kDrained: return kAgentDrained;
    default: return kAgentGaveUp;
  }
}

}  // namespace parallelrun
