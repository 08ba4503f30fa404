// Side inputs that lie in stores (job/side_inputs.h): fetched whole onto this node's disk before
// its first process starts, and kept there for as long as the node lives: for all of its processes,
// for each try of a mini-batch, and for the agent that follows one that died.
//
// They lie at FOLDER/KEY/NAME/…, where KEY says which versions they are. FOLDER/KEY.whole is made
// when all are there, and holds the boot of the machine: nothing is synced, so after a crash of the
// machine a file may be shorter than it seemed, and all are fetched again.
//
// Thread-safety: made, used and destroyed on the loop's thread, where `on_end` is called too. All
// that waits for a store or a disk is done on threads of its own, which may be left behind.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent_config.h"
#include "agent/objects/fetcher.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/files.h"
#include "base/thread.h"
#include "base/time.h"
#include "job/side_inputs.h"

namespace parallelrun::agent {

// Beside the node's working directory, as ObjectFolder.
std::string SideInputFolder(const std::string& work_folder, uint32_t node);

// Of each side input of the job its path below that folder, in place of what stands for it in the
// arguments and in what the worker processes hear. Pure.
void PlaceSideInputs(const std::string& folder, JobSettings& job);

// "fetching side input model, 1.2 of 4.0 GB". Pure.
std::string FetchingText(const std::string& name, uint64_t bytes, uint64_t of);

class SideInputFetcher {
 public:
  // Once: all are there, or why they never will be: kStale, one is no more what was listed.
  using OnEnd = std::function<void(Status status)>;

  struct Facts {
    std::shared_ptr<Files> files;
    std::string folder;
    std::string boot;  // of the machine; "": what a predecessor left is fetched again
    std::vector<job::SideInput> side_inputs;
    std::vector<JobStore> stores;
    ObjectFetcher::OpenStore open;
    // Of objects that are read by URLs: blocks, on one of the threads.
    std::function<Result<job::SideUrls>(const job::SideUrlsWanted& wanted,
                                        const std::stop_token& stop)>
        ask_urls = nullptr;
  };

  // `loop` must outlive it.
  SideInputFetcher(EventLoop& loop, Facts facts, OnEnd on_end);
  // Ends with ObjectFetcher::kEndLimit, if Finish was not called.
  ~SideInputFetcher();
  SideInputFetcher(const SideInputFetcher&) = delete;
  SideInputFetcher& operator=(const SideInputFetcher&) = delete;

  // What it is at, for people, and the bytes that it has fetched of all.
  struct Progress {
    std::string text;
    uint64_t bytes = 0;
  };
  Progress Now() const;

  // Ends all requests; `on_end` is not called any more. What is there stays. False: the disk or a
  // store has hung for `limit`, and its threads are left with what they use.
  bool Finish(Duration limit);

 private:
  struct Shared;  // by the threads
  static void Work(Shared& shared, bool first);

  const std::shared_ptr<Shared> shared_;
  std::vector<Thread> threads_;
};

}  // namespace parallelrun::agent
