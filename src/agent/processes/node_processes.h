// NodeProcesses carries out what AgentCore decides about the worker processes of this node, and
// tells it what they say, what they are at and how they end. Also what goes with a process: its
// GPU, its logs and their bounds, its memory.
//
// Thread-safety: none; made, used and destroyed on the loop's thread, the program's main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/agent_config.h"
#include "agent/core/agent_core.h"
#include "agent/logs/log_trimmer.h"
#include "agent/logs/mini_batch_writer.h"
#include "agent/logs/resource_monitor.h"
#include "agent/processes/memory_group.h"
#include "agent/processes/memory_watch.h"
#include "agent/processes/process.h"
#include "agent/room_watch.h"
#include "base/event_loop.h"
#include "base/files.h"
#include "base/time.h"
#include "job/gpu_slots.h"
#include "job/side_list.h"

namespace parallelrun::agent {

// The folder of what the agent itself logs.
std::string NodeLogs(const AgentConfig& config);

class NodeProcesses {
 public:
  // All must outlive this; `registered` is what the last registration told. `changed` is called
  // when the core was told something.
  NodeProcesses(EventLoop& loop, const AgentConfig& config, const RegisterReply& registered,
                AgentCore& core, std::shared_ptr<Files> files, std::function<void()> changed);

  // Begins to look after them.
  void Start();
  // A process has left side files with its mini-batch, and waits for what becomes of them; it has
  // ended. Of a job whose side files go to a store.
  using OnSideFiles =
      std::function<void(uint32_t process, job::BatchId mini_batch, job::SideList list)>;
  void SendSideFiles(OnSideFiles on_side_files, std::function<void(uint32_t process)> on_gone);
  void TellSideFiles(uint32_t process, SideFilesAnswer answer, const std::string& text);
  // After a registration.
  void Monitor();
  // Writes the last lines of the logs, and ends the monitor.
  void Finish();

  void TellStatus();
  void Perform(const WorkerAction& action);
  void Log(const std::vector<MiniBatchNote>& notes);
  // Sends what Perform has queued.
  void Flush();

 private:
  void StartProcess(const WorkerAction& action);
  // Calls `then` with its Python stack in one line once that is there, or with "" when it took too
  // long; not at all if it ends before.
  using WithStack = std::function<void(uint32_t number, const std::string& stack)>;
  void AskForStack(uint32_t number, const WithStack& then);
  void AwaitStack(uint32_t number, size_t seen, Instant until, const WithStack& then);
  bool OnFrame(uint32_t number, FrameType type, std::string_view body);
  // Tells the core whether there is room to write: "" or why there is none.
  void TellRoom(const std::string& why);
  void ReapAll();
  void WatchMemory();

  EventLoop& loop_;
  const AgentConfig& config_;
  const RegisterReply& registered_;
  AgentCore& core_;
  const std::shared_ptr<Files> files_;
  const std::function<void()> changed_;
  OnSideFiles on_side_files_;
  std::function<void(uint32_t process)> on_side_files_gone_;
  SystemClock clock_;
  MemoryGroup memory_;
  MemoryWatch memory_watch_{memory_};
  const std::optional<std::vector<std::string>> gpus_ = FindGpus();
  job::GpuSlots gpu_slots_{gpus_.value_or(std::vector<std::string>())};
  bool told_of_gpus_ = false;  // that there are fewer than processes
  MiniBatchWriter mini_batches_;
  LogTrimmer trimmer_;
  std::unique_ptr<ResourceMonitor> monitor_;  // while it is on
  RoomWatch room_;
  std::string no_room_;  // as the core was told
  std::map<uint32_t, std::unique_ptr<WorkerProcess>> processes_;
  std::map<uint32_t, std::string> where_;  // it was in Python when it was killed
};

}  // namespace parallelrun::agent
