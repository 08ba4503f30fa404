#include "agent/agent.h"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/agent_client.h"
#include "agent/code_copy.h"
#include "agent/core/agent_core.h"
#include "agent/exchange.h"
#include "agent/farewell.h"
#include "agent/folder_tree.h"
#include "agent/logs/log_upload.h"
#include "agent/objects/node_objects.h"
#include "agent/objects/side_inputs.h"
#include "agent/objects/side_sender.h"
#include "agent/processes/node_processes.h"
#include "agent/processes/process_tree.h"
#include "agent/stray_files.h"
#include "base/escape.h"
#include "base/files.h"
#include "base/log.h"
#include "base/ready_mark.h"
#include "base/suspension.h"

namespace parallelrun::agent {
namespace {

constexpr Duration kLastLogs = seconds(10);
constexpr Duration kLastLogsLost = seconds(1);
constexpr Duration kStopAllLimit = seconds(5);
constexpr Duration kMaxSleep = std::chrono::hours(1);
// By them a pod that drained is known from one whose job is over: both may end with 0.
constexpr char kDrainedWords[] = "drained: it was told to go, and holds nothing more";

class Agent {
 public:
  Agent(const AgentConfig& config, const AgentOptions& options, HttpClient& client,
        LogUploader& uploader, std::shared_ptr<Files> files)
      : config_(config),
        options_(options),
        uploader_(uploader),
        files_(std::move(files)),
        report_(loop_, client),
        park_(loop_, client),
        core_(options, clock_.Now()),
        processes_(loop_, config, registered_, core_, files_, [this] { SchedulePump(); }),
        objects_(loop_, config, registered_, core_, processes_, files_,
                 [this] { SchedulePump(); }) {}

  // Runs until there is an end.
  AgentEnd Run();
  const AgentCore& core() const { return core_; }
  const RegisterReply& registered() const { return registered_; }
  // Of the last call that failed; "" after one that did not.
  const std::string& last_failure() const { return last_failure_; }
  // No process was ready before the node was told to go.
  bool let_go_unready() const { return let_go_unready_; }

 private:
  void TellReady();
  void OnSignal();
  static void StopWithWorkers();
  void SchedulePump();
  void Pump();
  void Call(CallKind call, const job::ExchangeRequest& request);
  void OnCalled(CallKind call, const Result<HttpResponse>& response);
  void OnRegisterAnswer(const HttpResponse& response);

  const AgentConfig& config_;
  const AgentOptions& options_;
  LogUploader& uploader_;
  const std::shared_ptr<Files> files_;  // a thread that hangs outlives this with it
  SystemClock clock_;
  EventLoop loop_;
  ExchangeThread report_;
  ExchangeThread park_;
  AgentCore core_;
  CallLimits limits_;
  RegisterReply registered_;
  std::string last_failure_;
  NodeProcesses processes_;
  NodeObjects objects_;
  std::vector<WorkerAction> actions_;
  std::vector<MiniBatchNote> notes_;
  job::ExchangeRequest request_;
  EventLoop::TimerId timer_ = EventLoop::TimerId::kNone;
  bool pump_scheduled_ = false;
  bool draining_ = false;
  bool ready_told_ = false;
  bool let_go_unready_ = false;
};

AgentEnd Agent::Run() {
  for (const int signo : {SIGTERM, SIGINT}) loop_.OnSignal(signo, [this] { OnSignal(); });
  loop_.OnSignal(SIGTSTP, [] { StopWithWorkers(); });
  SchedulePump();
  processes_.Start();
  loop_.Run();
  processes_.Finish();
  objects_.Finish();
  if (core_.dropped_metrics() > 0) {
    spdlog::warn("{} metrics were lost: they came faster than they could be passed on",
                 core_.dropped_metrics());
  }
  return core_.end();
}

// Ctrl-Z: whatever runs below stops, and no time goes by.
void Agent::StopWithWorkers() {
  const std::vector<pid_t> stopped = StopDescendants(kStopAllLimit);
  suspension::StopTime();
  spdlog::info("stopped by a signal, with {} processes", stopped.size());
  suspension::AwaitContinue();
  for (const pid_t pid : stopped) kill(pid, SIGCONT);
  suspension::ResumeTime();
  spdlog::info("continued");
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

// Once for all the events of a turn of the loop.
void Agent::SchedulePump() {
  if (pump_scheduled_) return;
  pump_scheduled_ = true;
  loop_.Post([this] { Pump(); });
}

// Once. A node that is told to go before it is ready says so too: who waits for it was not wrong
// to.
void Agent::TellReady() {
  if (ready_told_ || options_.ready_file.empty()) return;
  const bool ready = core_.any_ready();
  if (!ready && !core_.told_to_go()) return;
  ready_told_ = MakeReadyMark(options_.ready_file);  // where it cannot be made, in the next turn
  let_go_unready_ = ready_told_ && !ready;
}

void Agent::Pump() {
  pump_scheduled_ = false;
  processes_.TellStatus();
  const Instant now = clock_.Now();
  core_.Step(now);
  TellReady();
  core_.TakeActions(actions_);
  for (const WorkerAction& action : actions_) processes_.Perform(action);
  core_.TakeNotes(notes_);
  processes_.Log(notes_);
  processes_.Flush();
  objects_.Fetch();
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

void Agent::Call(CallKind call, const job::ExchangeRequest& request) {
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
    http.body = job::Encode(request);
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
  const Result<job::ExchangeReply> reply = job::DecodeExchangeReply(response->body);
  if (!reply) {
    spdlog::error("{}", reply.error().message);
    return core_.OnCallFailed(call, CallFailure::kUnreachable, now);
  }
  const bool draining = core_.draining();
  core_.OnReply(call, *reply, now);
  objects_.TakeUrls(reply->urls);
  if (!draining && core_.draining()) {
    spdlog::info("draining, as the coordinator asks: running mini-batches have {} to finish",
                 HumanDuration(options_.drain_grace));
  }
}

void Agent::OnRegisterAnswer(const HttpResponse& response) {
  const Instant now = clock_.Now();
  Result<RegisterReply> reply = ParseRegisterReply(response.body);
  if (!reply) {
    spdlog::error("{}", reply.error().message);
    return core_.OnCallFailed(CallKind::kRegister, CallFailure::kRefused, now);
  }
  // Where each process has an output folder of its own, there is none for all of them.
  const JobSettings& job = reply->job;
  const Status linked = job.staging.empty() && job.side_store.empty()
                            ? LinkOutputs(config_.work_folder, job.output_folder)
                            : Status();
  // The script may not need it.
  if (!linked.ok()) spdlog::warn("./outputs is not there: {}", linked.error().message);
  // Paths are this node's own, and the same after each registration.
  PlaceSideInputs(SideInputFolder(config_.work_folder, config_.node), reply->job);
  if (!reply->job.side_store.empty()) {
    reply->job.staging = SideFileFolder(config_.work_folder, config_.node);
  }
  registered_ = std::move(*reply);
  const job::Incarnation& incarnation = registered_.registration.incarnation;
  spdlog::info("registered with epoch {} as incarnation {}", incarnation.epoch, incarnation.number);
  uploader_.SetLimit(registered_.job.log_limit);
  processes_.Monitor();
  objects_.Begin();
  core_.OnRegistered(registered_.registration, now);
}

// For the log, and where Kubernetes looks.
int CannotStart(Files& files, const AgentOptions& options, const Error& error) {
  spdlog::error("{}", Printable(error.message, kShownLongest));
  LeaveFarewell(files, options.farewell, error.message);
  return error.code == Code::kNoSpace ? kAgentNoRoom : kAgentCannotStart;
}

// Half a copy would be in the way of the next start, and takes the room that it needs.
void RemoveHalfCopy(const Files& files, const std::string& work_folder) {
  const Status removed = RemoveAllBelow(files, work_folder);
  if (removed.ok()) return;
  spdlog::warn("half a copy of the code is left in {}: {}", Printable(work_folder, kShownLong),
               removed.error().message);
}

std::string LastWords(const Agent& agent, const AgentConfig& config) {
  if (agent.core().end() == AgentEnd::kDrained) return kDrainedWords;
  std::string words = agent.core().end_message();
  if (agent.core().end() != AgentEnd::kLost) return words;
  words += ", at " + config.url;
  return agent.last_failure().empty() ? words : words + ": " + agent.last_failure();
}

int ExitCode(AgentEnd end, const AgentOptions& options) {
  switch (end) {
    case AgentEnd::kFinished: return kAgentFinished;
    case AgentEnd::kDrained: return options.drained_exit;
    default: return kAgentGaveUp;
  }
}

// In a pod HOME is below a volume that is empty at first. What cannot be made is the script's to
// complain about: not every script needs a home.
void MakeHome(const Files& files) {
  for (const char* name : {"HOME", "XDG_CACHE_HOME"}) {
    const char* folder = std::getenv(name);
    if (folder == nullptr || folder[0] != '/') continue;
    static_cast<void>(MakeTree(files, folder, Links::kFollow));
  }
}

}  // namespace

int RunAgent(const AgentConfig& config, const AgentOptions& options) {
  const std::shared_ptr<Files> files = MakeSystemFiles();
  MakeHome(*files);
  if (const Status copied = CopyCode(config.code_folder, config.work_folder); !copied.ok()) {
    if (copied.error().code == Code::kNoSpace) RemoveHalfCopy(*files, config.work_folder);
    return CannotStart(*files, options, copied.error());
  }
  const StrayFiles stray(*files, config.work_folder);
  if (options.log_to_file) LogToFile(NodeLogs(config) + "/_main.txt");
  const Result<HttpClientOptions> client_options = ClientOptions(config);
  if (!client_options) return CannotStart(*files, options, client_options.error());
  Result<std::unique_ptr<HttpClient>> client = HttpClient::Make(*client_options);
  Result<std::unique_ptr<HttpClient>> log_client = HttpClient::Make(*client_options);
  if (!client || !log_client)
    return CannotStart(*files, options, (client ? log_client : client).error());
  LogUploader logs(files, config.work_folder + "/logs", config.node, std::move(*log_client));
  AgentEnd end = AgentEnd::kNone;
  bool let_go_unready = false;
  job::Incarnation incarnation;
  {
    Agent agent(config, options, **client, logs, files);
    end = agent.Run();
    let_go_unready = agent.let_go_unready();
    incarnation = agent.registered().registration.incarnation;
    if (const std::string words = LastWords(agent, config); !words.empty()) {
      spdlog::log(end == AgentEnd::kDrained ? spdlog::level::info : spdlog::level::err, "{}",
                  Printable(words, kShownLongest));
      LeaveFarewell(*files, options.farewell, words);
    }
    (*client)->Cancel();  // a parked call ends now; the agent waits for it
  }
  if (incarnation.epoch != 0) {
    const bool complete = logs.Finish(end == AgentEnd::kLost ? kLastLogsLost : kLastLogs);
    if (!complete) spdlog::warn("not all logs were uploaded");
    // The first client is cancelled for good.
    const Result<std::unique_ptr<HttpClient>> last = HttpClient::Make(*client_options);
    if (last && end != AgentEnd::kLost) {
      Leave(**last, config.node, incarnation, end, stray.Look());
    }
  }
  if (let_go_unready) std::this_thread::sleep_for(3 * kLookForMark);  // who waits sees the mark
  return ExitCode(end, options);
}

}  // namespace parallelrun::agent
