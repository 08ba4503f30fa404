// Sends the side files of attempts to the store of the output, while their processes wait for it
// (docs/worker-protocol.md, "Side files in a store"). No node has keys of that store: the
// coordinator begins an upload for each file, and signs a URL for each of its parts. A store or a
// coordinator that is away costs no try: the sending goes on when it is back, for as long as the
// process lives.
//
// Thread-safety: made, used and destroyed on the loop's thread, where `tell` is called too. All
// that waits for a disk, a store or the coordinator is done on threads of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/processes/frames.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/thread.h"
#include "base/time.h"
#include "job/ids.h"
#include "job/side_list.h"
#include "job/side_uploads.h"
#include "store/part_putter.h"

namespace parallelrun::agent {

// Where processes of a node write such files: beside its working directory, as ObjectFolder.
std::string SideFileFolder(const std::string& work_folder, uint32_t node);

class SideSender {
 public:
  // kNotFound: an upload is not known there; kStale: this node does not hold the mini-batch;
  // kUnavailable: a later call may succeed. Blocks.
  using Ask = std::function<Result<job::SideUploads>(const job::SideUploadsWanted& wanted,
                                                     const std::stop_token& stop)>;
  // An attempt is told that it goes on, or at last how it ended: with the line that stands in front
  // of its rows, or why there is none.
  using Tell =
      std::function<void(uint32_t process, SideFilesAnswer answer, const std::string& text)>;
  using OpenPutter = std::function<Result<std::unique_ptr<store::PartPutter>>(std::stop_token)>;

  struct Facts {
    std::string folder;  // SideFileFolder: below it lies the folder that a list names
    OpenPutter open;
    Ask ask;
    Duration pause = seconds(1);         // after the store or the coordinator was away
    Duration refused_for = seconds(30);  // that the node does not hold it: then it ends
  };

  // `loop` must outlive it.
  SideSender(EventLoop& loop, Facts facts, Tell tell);
  // Ends with kSideEndLimit, if Finish was not called.
  ~SideSender();
  SideSender(const SideSender&) = delete;
  SideSender& operator=(const SideSender&) = delete;

  // A process has at most one at a time.
  void Send(uint32_t process, job::BatchId mini_batch, job::SideList list);
  // It has ended: what it had is not sent on.
  void Forget(uint32_t process);
  // What keeps attempts waiting for the store, for people; "": nothing does.
  std::string WaitsFor() const;
  // Ends all requests. False: a thread hangs, and is left (Thread::JoinOrLeave).
  bool Finish(Duration limit);

  static constexpr Duration kSideEndLimit = seconds(2);

 private:
  struct Shared;  // by the threads
  static void Work(Shared& shared);

  const std::shared_ptr<Shared> shared_;
  std::vector<Thread> threads_;
};

}  // namespace parallelrun::agent
