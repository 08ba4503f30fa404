#include "agent/agent.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "agent/agent_client.h"
#include "agent/agent_core.h"
#include "agent/code_copy.h"
#include "agent/exchange.h"
#include "agent/farewell.h"
#include "agent/log_upload.h"
#include "agent/memory_watch.h"
#include "agent/mini_batch_log.h"
#include "agent/process.h"
#include "agent/resource_monitor.h"
#include "agent/spawn.h"
#include "base/escape.h"
#include "base/log.h"
#include "job/gpu_slots.h"

namespace parallelrun {
namespace {

constexpr Duration kLastLogs = seconds(10);
constexpr Duration kLastLogsLost = seconds(1);
constexpr Duration kHousekeeping = milliseconds(250);
constexpr Duration kMemoryLook = milliseconds(50);
constexpr Duration kAfterMemoryKill = milliseconds(500);  // until its memory is free
constexpr Duration kMaxSleep = std::chrono::hours(1);
constexpr size_t kMaxShown = 1000;

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
  // Of the last call that failed; "" after one that did not.
  const std::string& last_failure() const { return last_failure_; }

 private:
  void OnSignal();
  void ReapAll();
  void SchedulePump();
  void Pump();
  void KeepHouse();
  void WatchMemory();
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
  MemoryWatch memory_watch_{memory_};
  ExchangeThread report_;
  ExchangeThread park_;
  AgentCore core_;
  CallLimits limits_;
  RegisterReply registered_;
  std::string last_failure_;
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
  // Where the agent is process 1 the limit is its container's; elsewhere it is also for others.
  if (getpid() == 1 && memory_watch_.on()) WatchMemory();
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
  ReapOrphans([this](pid_t pid) {
    return std::any_of(processes_.begin(), processes_.end(),
                       [pid](const auto& process) { return process.second->pid() == pid; });
  });
  SchedulePump();
}

// With cgroup v2 the kubelet has the kernel kill the whole container; so one process goes first.
void Agent::WatchMemory() {
  Duration next = kMemoryLook;
  if (const std::optional<std::string> words = memory_watch_.Short()) {
    std::vector<pid_t> leaders;
    leaders.reserve(processes_.size());
    for (const auto& [number, process] : processes_) leaders.push_back(process->pid());
    const std::optional<pid_t> largest = MemoryWatch::Largest(leaders);
    for (const auto& [number, process] : processes_) {
      if (process->pid() != largest) continue;
      spdlog::warn("{} is killed to save the container: {}", ProcessName(number), *words);
      process->Kill(
          "was killed before it would have taken the whole container with it, out of memory: " +
          *words + "; raise spec.resources.limits.memory, or lower spec.miniBatchSize");
      next = kAfterMemoryKill;
    }
  }
  loop_.After(next, [this] { WatchMemory(); });
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
    const std::string& image = registered_.job.image;
    const std::string why =
        process.error().message + (image.empty() ? "" : " (the image is " + image + ")");
    spdlog::error("{} cannot be started: {}", ProcessName(number), why);
    gpu_slots_.Free(number);
    // Later, because the core is handing out actions now. A missing interpreter stays missing.
    const bool fatal = process.error().code == Code::kNotFound;
    loop_.Post([this, number, why, fatal] {
      if (fatal) core_.OnInitFailed(number, why, true, clock_.Now());
      core_.OnExited(number, "could not be started: " + why, clock_.Now());
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
  Duration park{};
  if (call == CallKind::kRegister) {
    http.path += "/register";
    const bool known = !registered_.run_id.empty();
    http.headers.push_back({"Content-Type", "application/json"});
    http.body = RegisterBody(registered_.run_id, config_.node,
                             known ? registered_.registration.processes : 0);
  } else {
    http.path += "/exchange";
    http.headers.push_back({"Content-Type", "application/octet-stream"});
    http.body = Encode(request);
    park = milliseconds(request.park_ms);
  }
  ExchangeThread& thread = call == CallKind::kPark ? park_ : report_;
  const Duration limit = limits_.Of(call, park);
  thread.Send(std::move(http), limit, [this, call](const Result<HttpResponse>& response) {
    OnCalled(call, response);
    SchedulePump();
  });
}

void Agent::OnCalled(CallKind call, const Result<HttpResponse>& response) {
  const Instant now = clock_.Now();
  limits_.OnResult(call, response);
  if (!response || response->status != 200) {
    const CallFailure failure = FailureOf(call, response);
    last_failure_ = FailureWords(response);
    spdlog::info("the coordinator did not take a call: {}", last_failure_);
    return core_.OnCallFailed(call, failure, now);
  }
  last_failure_.clear();
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

namespace {

// For the log, and where Kubernetes looks.
int CannotStart(const AgentOptions& options, const Error& error) {
  spdlog::error("{}", Printable(error.message, kMaxShown));
  LeaveFarewell(options.farewell, error.message);
  return kAgentCannotStart;
}

std::string LastWords(const Agent& agent, const AgentConfig& config) {
  std::string words = agent.core().end_message();
  if (agent.core().end() != AgentEnd::kLost) return words;
  words += ", at " + config.url;
  return agent.last_failure().empty() ? words : words + ": " + agent.last_failure();
}

int ExitCode(AgentEnd end) {
  switch (end) {
    case AgentEnd::kFinished: return kAgentFinished;
    case AgentEnd::kDrained: return kAgentDrained;
    default: return kAgentGaveUp;
  }
}

// In a pod HOME is below a volume that is empty at first. What cannot be made is the script's to
// complain about: not every script needs a home.
void MakeHome() {
  for (const char* name : {"HOME", "XDG_CACHE_HOME"}) {
    const char* folder = std::getenv(name);
    std::error_code ignored;
    if (folder != nullptr && folder[0] == '/') std::filesystem::create_directories(folder, ignored);
  }
}

}  // namespace

int RunAgent(const AgentConfig& config, const AgentOptions& options) {
  MakeHome();
  if (const Status copied = CopyCode(config.code_folder, config.work_folder); !copied.ok()) {
    return CannotStart(options, copied.error());
  }
  if (options.log_to_file) LogToFile(NodeLogs(config) + "/_main.txt");
  const Result<HttpClientOptions> client_options = ClientOptions(config);
  if (!client_options) return CannotStart(options, client_options.error());
  Result<std::unique_ptr<HttpClient>> client = HttpClient::Make(*client_options);
  Result<std::unique_ptr<HttpClient>> log_client = HttpClient::Make(*client_options);
  if (!client || !log_client) return CannotStart(options, (client ? log_client : client).error());
  LogUploader logs(config.work_folder + "/logs", config.node, std::move(*log_client));
  AgentEnd end = AgentEnd::kNone;
  Incarnation incarnation;
  {
    Agent agent(config, options, **client, logs);
    end = agent.Run();
    incarnation = agent.registered().registration.incarnation;
    if (const std::string words = LastWords(agent, config); !words.empty()) {
      spdlog::error("{}", Printable(words, kMaxShown));
      LeaveFarewell(options.farewell, words);
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
  return ExitCode(end);
}

}  // namespace parallelrun
