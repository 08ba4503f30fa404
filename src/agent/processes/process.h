// WorkerProcess: one Python process of this node, its socket and its status page. Decides nothing;
// see AgentCore.
//
// Thread-safety: none; made, used and destroyed on the loop's thread, which must be the program's
// main thread (the process dies with the *thread* that started it). The agent calls Reap for each
// process when SIGCHLD comes. Owns the process: the destructor kills and reaps it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/core/agent_types.h"
#include "agent/processes/frames.h"
#include "agent/processes/memory_group.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/time.h"
#include "job/ids.h"

namespace parallelrun::agent {

struct ProcessSpec {
  std::vector<std::string> command;      // looked up in the PATH of `environment`
  std::vector<std::string> environment;  // all of it, NAME=value
  std::string work_folder;
  std::string stdout_path;  // appended to; folders are made
  std::string stderr_path;
};

class WorkerProcess {
 public:
  // A frame that arrived; false means that it may not come now, and ends the process. The body is
  // valid during the call. Must not destroy the WorkerProcess.
  using OnFrame = std::function<bool(FrameType type, std::string_view body)>;

  // Forks and executes. An error says what is missing and what to do; kNotFound: the interpreter.
  // `files` makes the folders of its logs.
  static Result<std::unique_ptr<WorkerProcess>> Start(EventLoop& loop, const Files& files,
                                                      const ProcessSpec& spec,
                                                      const MemoryGroup& memory, OnFrame on_frame);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Frames to send go here (frames.h), then Flush: one write for many.
  std::string& out() { return out_; }
  void Flush();

  StatusReading Status() const;
  // Mini-batches up to `sequence` are not to be begun any more (docs/worker-protocol.md, "Taking
  // back"). Status tells when that is so.
  void TakeBack(uint64_t sequence);
  // Where on stdout and stderr the words are of the mini-batch that Status tells of, until now.
  job::OutputRanges Output() const;
  pid_t pid() const { return pid_; }

  // Its stdout and stderr, open once more.
  std::vector<Fd> Logs() const;

  // Asks Python for its stacks, which it writes a moment later.
  void AskForStack();
  // What it has written of them since then, bounded.
  std::string SinceAsked() const;
  // Text of our own at the end of its stderr, for whoever is led there; Note: a line.
  void Append(const std::string& text) const;
  void Note(const std::string& words) const { Append("parallelrun: " + words + "\n"); }
  // Such a line on how it ended, once Output was read: it is no output of a mini-batch.
  void NoteEnd() const {
    if (!last_note_.empty()) Note(last_note_);
  }

  // SIGKILL to its whole process group. Reap tells when it has ended, and how: in these words, if
  // there are any.
  void Kill(const std::string& words = "");
  // Once the process has ended: hands the frames that it left to OnFrame, then returns how it
  // ended ("was killed by signal 11 (SIGSEGV)"). nullopt while it lives, and after the first time.
  // If it did not end well, all that it started is killed too.
  std::optional<std::string> Reap();

 private:
  WorkerProcess(EventLoop& loop, const MemoryGroup& memory, OnFrame on_frame);
  // True when more may be there.
  bool ReadSome();
  bool HandleFrames();
  void OnReadable();
  void CloseSocket();
  void Fail(std::string words);
  std::string Words(const siginfo_t& info, uint64_t peak) const;
  uint64_t KnownTakenBack() const;

  EventLoop& loop_;
  const MemoryGroup& memory_;
  OnFrame on_frame_;
  pid_t pid_ = -1;
  bool reaped_ = true;
  bool killed_ = false;  // by us
  int socket_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;
  Fd stacks_;  // in memory
  uint64_t* page_ = nullptr;
  uint64_t taken_back_ = 0;        // word 3
  uint64_t known_taken_back_ = 0;  // what it was before
  Instant taken_back_at_{};
  std::string stderr_path_;
  std::string mark_;   // in the environment of all that it starts
  std::string fault_;  // why we ended it, when it broke the protocol
  std::optional<uint64_t> oom_kills_;
  uint64_t asked_at_ = 0;  // bytes of the stacks
  std::string last_note_;  // of how it ended, where nobody here ended it without a word
  EventLoop::WatchId reading_ = EventLoop::WatchId::kNone;
  EventLoop::WatchId writing_ = EventLoop::WatchId::kNone;
  EventLoop::TimerId ending_ = EventLoop::TimerId::kNone;
  std::vector<char> in_;
  size_t in_start_ = 0;
  size_t in_end_ = 0;
  std::string out_;
  size_t sent_ = 0;
};

}  // namespace parallelrun::agent
