#include "agent/processes/node_processes.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "agent/processes/frames.h"
#include "agent/processes/python_stack.h"
#include "agent/processes/spawn.h"
#include "agent/room.h"

namespace parallelrun::agent {
namespace {

constexpr Duration kMemoryLook = milliseconds(50);
constexpr Duration kStackLook = milliseconds(20);
constexpr Duration kAfterMemoryKill = milliseconds(500);  // until its memory is free
constexpr Duration kAfterNoProcess = seconds(1);          // until there may be one more

}  // namespace

std::string NodeLogs(const AgentConfig& config) {
  return config.work_folder + "/logs/sys/node/" + std::to_string(config.node);
}

NodeProcesses::NodeProcesses(EventLoop& loop, const AgentConfig& config,
                             const RegisterReply& registered, AgentCore& core,
                             std::shared_ptr<Files> files, std::function<void()> changed)
    : loop_(loop),
      config_(config),
      registered_(registered),
      core_(core),
      files_(std::move(files)),
      changed_(std::move(changed)),
      mini_batches_(files_, {NodeLogs(config), OwnAddress()}),
      room_({[folder = config.work_folder] { return WantOfRoom(folder); },
             [this] { loop_.Post([this] { TellRoom(room_.Last()); }); }}) {}

void NodeProcesses::Start() {
  loop_.OnSignal(SIGCHLD, [this] { ReapAll(); });
  TellRoom(room_.Now());
  // Where the agent is process 1 the limit is its container's; elsewhere it is also for others.
  if (getpid() == 1 && memory_watch_.on()) WatchMemory();
}

void NodeProcesses::SendSideFiles(OnSideFiles on_side_files,
                                  std::function<void(uint32_t process)> on_gone) {
  on_side_files_ = std::move(on_side_files);
  on_side_files_gone_ = std::move(on_gone);
}

void NodeProcesses::TellSideFiles(uint32_t process, SideFilesAnswer answer,
                                  const std::string& text) {
  const auto it = processes_.find(process);
  if (it == processes_.end()) return;
  AppendSideFilesSent(it->second->out(), answer, text);
  it->second->Flush();
}

void NodeProcesses::Monitor() {
  mini_batches_.SetLimit(registered_.job.log_limit);
  trimmer_.SetLimit(registered_.job.log_limit);
  const Duration interval = registered_.job.resource_monitor_interval;
  if (monitor_ || interval <= Duration(0)) return;
  monitor_ = std::make_unique<ResourceMonitor>(
      files_,
      ResourceMonitorOptions{config_.work_folder + "/logs/perf/" + std::to_string(config_.node),
                             interval,
                             {config_.work_folder, registered_.job.output_folder}});
}

void NodeProcesses::Finish() {
  mini_batches_.Finish();
  monitor_.reset();
}

void NodeProcesses::TellStatus() {
  for (const auto& [number, process] : processes_) core_.OnStatus(number, process->Status());
}

void NodeProcesses::Log(const std::vector<MiniBatchNote>& notes) {
  if (!notes.empty()) mini_batches_.log().Add(notes, clock_.WallNow());
}

void NodeProcesses::Flush() {
  for (const auto& [number, process] : processes_) {
    if (!process->out().empty()) process->Flush();
  }
}

void NodeProcesses::Perform(const WorkerAction& action) {
  if (action.kind == WorkerAction::Kind::kStart) return StartProcess(action);
  const auto it = processes_.find(action.process);
  if (it == processes_.end()) return;  // its end is about to be told
  switch (action.kind) {
    case WorkerAction::Kind::kGive:
      AppendBatchFrame(it->second->out(), action.sequence, action.work);
      break;
    case WorkerAction::Kind::kTakeBack: it->second->TakeBack(action.sequence); break;
    case WorkerAction::Kind::kStop: AppendFrame(it->second->out(), FrameType::kStop, ""); break;
    case WorkerAction::Kind::kHeader:
      AppendFrame(it->second->out(), FrameType::kHeaderOfJob, action.work);
      break;
    case WorkerAction::Kind::kKill:
      if (!action.why.empty()) {
        spdlog::warn("{}", action.why);
        it->second->Note(std::string(action.why));
      }
      if (action.stack) {
        AskForStack(action.process, [this](uint32_t number, const std::string& stack) {
          if (!stack.empty()) where_[number] = ". Its Python stack: " + stack;
          processes_.at(number)->Kill();
        });
      } else {
        it->second->Kill();
      }
      break;
    case WorkerAction::Kind::kWhere:
      AskForStack(action.process, [this](uint32_t number, const std::string& stack) {
        core_.OnWhere(number, stack);
        changed_();
      });
      break;
    case WorkerAction::Kind::kStart: break;
  }
}

void NodeProcesses::AskForStack(uint32_t number, const WithStack& then) {
  processes_.at(number)->AskForStack();
  AwaitStack(number, 0, clock_.Now() + kStackWait, then);
}

// The agent has leases to renew meanwhile, so it looks again and again. What is written is whole
// when nothing more came for one look.
void NodeProcesses::AwaitStack(uint32_t number, size_t seen, Instant until, const WithStack& then) {
  const auto it = processes_.find(number);
  if (it == processes_.end()) return;
  const std::string dump = it->second->SinceAsked();
  const bool whole = !dump.empty() && dump.size() == seen;
  if (!whole && clock_.Now() < until) {
    loop_.After(kStackLook, [this, number, size = dump.size(), until, then] {
      AwaitStack(number, size, until, then);
    });
    return;
  }
  // Python looks for its package, and for the code, where the links lead.
  std::error_code ignored;
  const std::string own =
      std::filesystem::canonical(config_.python_path + "/start_worker.py", ignored).parent_path();
  const std::string code = std::filesystem::weakly_canonical(config_.work_folder, ignored);
  it->second->Append(WholeStacks(dump, code));
  const std::string stack = PythonStack(dump, code, own);
  if (!stack.empty()) spdlog::warn("the Python stack of {}: {}", ProcessName(number), stack);
  then(number, stack);
}

void NodeProcesses::StartProcess(const WorkerAction& action) {
  const uint32_t number = action.process;
  const std::string logs = config_.work_folder + "/logs/user/";
  const std::string own = std::to_string(config_.node) + "/" + ProcessName(number);
  ProcessSpec spec;
  spec.command = {registered_.job.python, config_.python_path + "/start_worker.py"};
  GpuGrant gpu;
  if (gpus_) gpu = {gpus_->size(), gpu_slots_.Take(number, registered_.job.processes_per_gpu)};
  if (gpu.count && *gpu.count > 0 && !gpu.device && !std::exchange(told_of_gpus_, true)) {
    spdlog::warn(
        "{} gets no GPU of its own, since this node has {} and runs more processes: it "
        "sees them all; lower processCountPerNode, share them out on purpose by a higher "
        "processesPerGpu, or have the script choose one",
        ProcessName(number), *gpu.count);
  }
  const JobSettings job = ForProcess(registered_.job, number);
  spec.environment = WorkerEnvironment(OwnEnvironment(), job, config_.python_path, gpu);
  spec.work_folder = config_.work_folder;
  spec.stdout_path = logs + "stdout/" + own + ".stdout.txt";
  spec.stderr_path = logs + "stderr/" + own + ".stderr.txt";
  Result<std::unique_ptr<WorkerProcess>> process = WorkerProcess::Start(
      loop_, *files_, spec, memory_, [this, number](FrameType type, std::string_view body) {
        return OnFrame(number, type, body);
      });
  if (!process) {
    const std::string& image = registered_.job.image;
    const std::string why =
        process.error().message + (image.empty() ? "" : " (the image is " + image + ")");
    spdlog::error("{} cannot be started: {}", ProcessName(number), why);
    gpu_slots_.Free(number);
    // Later, because the core is handing out actions now. A missing interpreter stays missing; the
    // processes that a script forked may still be ending.
    const bool fatal = process.error().code == Code::kNotFound;
    const bool busy = process.error().code == Code::kUnavailable;
    const bool full = process.error().code == Code::kNoSpace;
    loop_.After(busy ? kAfterNoProcess : Duration(0), [this, number, why, fatal, full] {
      if (fatal) core_.OnInitFailed(number, why, true, clock_.Now(), false);
      if (full) core_.OnInitRanOut(number, why, clock_.Now());
      core_.OnExited(number, "could not be started: " + why, clock_.Now());
      changed_();
    });
    return;
  }
  AppendFrame((*process)->out(), FrameType::kStart, StartBody(job, config_.node, number));
  mini_batches_.log().Open(number, (*process)->pid());
  trimmer_.Add(number, (*process)->Logs());
  if (monitor_) monitor_->SetProcess(ProcessName(number), (*process)->pid());
  processes_.emplace(number, std::move(*process));
}

bool NodeProcesses::OnFrame(uint32_t number, FrameType type, std::string_view body) {
  changed_();
  const Instant now = clock_.Now();
  switch (type) {
    case FrameType::kReady: {
      const std::optional<bool> shutdown = ParseReady(body);
      return shutdown && core_.OnReady(number, *shutdown, now);
    }
    case FrameType::kInitFailed: {
      std::optional<FailureText> failure = ParseFailure(body);
      if (!failure) return false;
      spdlog::error("{}: {}: {}", ProcessName(number), failure->kind, failure->message);
      TellRoom(room_.Now());
      if (failure->kind == kNoSpaceKind) {
        core_.OnInitRanOut(number, std::move(failure->message), now);
      } else {
        const bool logged = failure->kind != "PythonTooOld";  // it cannot run what writes the log
        core_.OnInitFailed(number, std::move(failure->message), failure->fatal, now, logged);
      }
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
      TellRoom(room_.Now());
      return answer && core_.OnFailed(number, std::move(*answer), now);
    }
    case FrameType::kPassedOver: {
      const std::optional<uint64_t> sequence = ParseSequence(body);
      return sequence && core_.OnPassedOver(number, *sequence, now);
    }
    case FrameType::kOwes: return core_.OnOwes(number);
    case FrameType::kStopped: {
      if (body.empty()) return core_.OnStopped(number, "", now);
      std::optional<FailureText> failure = ParseFailure(body);
      if (!failure) return false;
      spdlog::warn("shutdown() of {} failed: {}", ProcessName(number), failure->message);
      if (failure->message.empty()) failure->message = "it raised";
      return core_.OnStopped(number, std::move(failure->message), now);
    }
    case FrameType::kMetric:
      if (!IsMetric(body)) {
        spdlog::warn("a metric of {} is lost: it is no JSON object of 4 KiB at most",
                     ProcessName(number));
        return true;
      }
      return core_.OnTold(number, job::ProcessEvent::Kind::kMetric, body);
    case FrameType::kSideFiles: {
      std::optional<SideFilesFrame> frame = ParseSideFiles(body);
      if (!frame || !on_side_files_) return false;
      const std::optional<job::BatchId> id = core_.BatchOf(number, frame->sequence);
      if (id) on_side_files_(number, *id, std::move(frame->list));
      return id.has_value();
    }
    case FrameType::kHeader: return core_.OnTold(number, job::ProcessEvent::Kind::kHeader, body);
    default: return false;
  }
}

void NodeProcesses::TellRoom(const std::string& why) {
  if (why == no_room_) return;
  if (why.empty()) {
    spdlog::info("there is room again");
  } else {
    spdlog::warn("nothing is begun: {}", why);
  }
  no_room_ = why;
  core_.OnRoom(why);
  changed_();
}

void NodeProcesses::ReapAll() {
  TellRoom(room_.Now());
  for (auto it = processes_.begin(); it != processes_.end();) {
    const uint32_t number = it->first;
    const std::optional<std::string> words = it->second->Reap();
    if (!words) {
      ++it;
      continue;
    }
    if (on_side_files_gone_) on_side_files_gone_(number);
    core_.OnStatus(number, it->second->Status());
    core_.OnExited(number, *words, clock_.Now(), it->second->Output(), where_[number]);
    where_.erase(number);
    it->second->NoteEnd();
    spdlog::debug("{} {}", ProcessName(number), *words);
    gpu_slots_.Free(number);
    mini_batches_.log().Close(number);
    trimmer_.Forget(number);
    if (monitor_) monitor_->Forget(ProcessName(number));
    it = processes_.erase(it);
  }
  ReapOrphans([this](pid_t pid) {
    return std::any_of(processes_.begin(), processes_.end(),
                       [pid](const auto& process) { return process.second->pid() == pid; });
  });
  changed_();
}

// With cgroup v2 the kubelet has the kernel kill the whole container; so one process goes first.
void NodeProcesses::WatchMemory() {
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

}  // namespace parallelrun::agent
