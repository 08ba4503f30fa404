#include "agent/agent.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "agent/agent_client.h"
#include "agent/agent_core.h"
#include "agent/code_copy.h"
#include "agent/exchange.h"
#include "agent/log_upload.h"
#include "agent/mini_batch_log.h"
#include "agent/process.h"
#include "agent/resource_monitor.h"
#include "base/escape.h"
#include "base/log.h"
#include "job/gpu_slots.h"

namespace parallelrun {
namespace {

constexpr Duration kCallTimeout = seconds(60);
constexpr Duration kLastLogs = seconds(10);
constexpr Duration kLastLogsLost = seconds(1);
constexpr Duration kHousekeeping = milliseconds(250);
constexpr Duration kMaxSleep = std::chrono::hours(1);
constexpr size_t kMaxShown = 1000;

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

// The folder of what the agent itself logs.
std::string NodeLogs(const AgentConfig& config) {
  return config.work_folder + "/logs/sys/node/" + std::to_string(config.node);
}

class Agent {
 public:
  Agent(const AgentConfig& config, const AgentOptions& options, HttpClient& client,
        LogUploader& uploader)
      : config_(config),
        options_(options),
        uploader_(uploader),
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
  void KeepHouse();
  void Perform(const Action& action);
  void StartProcess(const Action& action);
  bool OnFrame(uint32_t number, FrameType type, std::string_view body);
  void Call(CallKind call, const ExchangeRequest& request);
  void OnCalled(CallKind call, const Result<HttpResponse>& response);
  void OnRegisterAnswer(const HttpResponse& response);

  const AgentConfig& config_;
  const AgentOptions& options_;
  LogUploader& uploader_;
  SystemClock clock_;
  EventLoop loop_;
  MemoryGroup memory_;
  ExchangeThread report_;
  ExchangeThread park_;
  AgentCore core_;
  RegisterReply registered_;
  const std::optional<std::vector<std::string>> gpus_ = FindGpus();
  GpuSlots gpu_slots_{gpus_.value_or(std::vector<std::string>())};
  MiniBatchLog mini_batch_log_{NodeLogs(config_), OwnAddress()};
  std::unique_ptr<ResourceMonitor> monitor_;  // while it is on
  std::map<uint32_t, std::unique_ptr<WorkerProcess>> processes_;
  std::vector<Action> actions_;
  std::vector<MiniBatchNote> notes_;
  ExchangeRequest request_;
  EventLoop::TimerId timer_ = EventLoop::TimerId::kNone;
  bool pump_scheduled_ = false;
  bool draining_ = false;
};

AgentEnd Agent::Run() {
  for (const int signo : {SIGTERM, SIGINT}) loop_.OnSignal(signo, [this] { OnSignal(); });
  loop_.OnSignal(SIGCHLD, [this] { ReapAll(); });
  SchedulePump();
  KeepHouse();
  loop_.Run();
  mini_batch_log_.Finish(clock_.WallNow(), registered_.job.log_limit);
  monitor_.reset();
  if (core_.dropped_metrics() > 0) {
    spdlog::warn("{} metrics were lost: they came faster than they could be passed on",
                 core_.dropped_metrics());
  }
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
    gpu_slots_.Free(number);
    mini_batch_log_.Close(number);
    if (monitor_) monitor_->Forget(ProcessName(number));
    it = processes_.erase(it);
  }
  SchedulePump();
}

// Bounds the logs, and writes what waits.
void Agent::KeepHouse() {
  const uint64_t limit = registered_.job.log_limit;
  for (const auto& [number, process] : processes_) process->TrimLogs(limit);
  mini_batch_log_.Flush(clock_.WallNow(), limit);
  loop_.After(kHousekeeping, [this] { KeepHouse(); });
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
  core_.TakeNotes(notes_);
  if (!notes_.empty()) mini_batch_log_.Add(notes_, clock_.WallNow());
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
  GpuGrant gpu;
  if (gpus_) gpu = {gpus_->size(), gpu_slots_.Take(number)};
  spec.environment = WorkerEnvironment(OwnEnvironment(), registered_.job, config_.python_path, gpu);
  spec.work_folder = config_.work_folder;
  spec.stdout_path = logs + "stdout/" + own + ".stdout.txt";
  spec.stderr_path = logs + "stderr/" + own + ".stderr.txt";
  Result<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(
      loop_, spec, memory_, [this, number](FrameType type, std::string_view body) {
        return OnFrame(number, type, body);
      });
  if (!process) {
    spdlog::error("{} cannot be started: {}", ProcessName(number), process.error().message);
    gpu_slots_.Free(number);
    // Later, because the core is handing out actions now.
    loop_.Post([this, number, words = "could not be started: " + process.error().message] {
      core_.OnExited(number, words, clock_.Now());
      SchedulePump();
    });
    return;
  }
  AppendFrame((*process)->out(), FrameType::kStart,
              StartBody(registered_.job, config_.node, number));
  mini_batch_log_.Open(number, (*process)->pid());
  if (monitor_) monitor_->SetProcess(ProcessName(number), (*process)->pid());
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
    case FrameType::kMetric:
      if (!IsMetric(body)) {
        spdlog::warn("a metric of {} is lost: it is no JSON object of 4 KiB at most",
                     ProcessName(number));
        return true;
      }
      return core_.OnTold(number, ProcessEvent::Kind::kMetric, body);
    case FrameType::kHeader: return core_.OnTold(number, ProcessEvent::Kind::kHeader, body);
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
  uploader_.SetLimit(registered_.job.log_limit);
  const Duration interval = registered_.job.resource_monitor_interval;
  if (!monitor_ && interval > Duration(0)) {
    monitor_ = std::make_unique<ResourceMonitor>(
        ResourceMonitorOptions{config_.work_folder + "/logs/perf/" + std::to_string(config_.node),
                               interval,
                               {config_.work_folder, registered_.job.output_folder}});
  }
  core_.OnRegistered(registered_.registration, now);
}

}  // namespace

int RunAgent(const AgentConfig& config, const AgentOptions& options) {
  if (const Status copied = CopyCode(config.code_folder, config.work_folder); !copied.ok()) {
    spdlog::error("{}", copied.error().message);
    return kAgentCannotStart;
  }
  if (options.log_to_file) LogToFile(NodeLogs(config) + "/_main.txt");
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
    Agent agent(config, options, **client, logs);
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
