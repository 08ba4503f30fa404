// Brings objects of stores onto this node's disk (ObjectFiles), as Cache decides, while the
// processes work.
//
// A version that is not the planned one is kStale; a store that cannot be reached now is asked
// again, for as long as the mini-batch is wanted; a disk that is full is kNoSpace, which costs no
// try (AgentCore::OnNotFetched).
//
// Thread-safety: made, used and destroyed on the loop's thread, where `on_end` is called too. All
// that waits for a store or a disk is done on threads of its own, and the lock that it shares with
// the loop is never held meanwhile: a disk that hangs holds up what needs it, and nothing else. The
// folder is this object's, from its making, which removes what a predecessor left there, to its
// end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "agent/agent_config.h"
#include "agent/core/agent_types.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/files.h"
#include "base/thread.h"
#include "base/time.h"
#include "job/node_messages.h"
#include "store/store.h"

namespace parallelrun::agent {

// Where objects of a node lie: beside its working directory, which is another one for each agent,
// so that the next agent finds what a killed one has left.
std::string ObjectFolder(const std::string& work_folder, uint32_t node);

class ObjectFetcher {
 public:
  // Once for each mini-batch that is wanted, unless it is let go of before: its Work with files in
  // place of objects, or why there is none.
  using OnEnd = std::function<void(Key key, Result<std::string> work)>;

  // Opens a store of the job, whose calls end once `stop` is asked for. On any thread.
  using OpenStore = std::function<Result<std::unique_ptr<store::Store>>(const JobStore& store,
                                                                        std::stop_token stop)>;

  // A URL by which an object of that mini-batch is read has ended, or was never there: it waits for
  // others (TakeUrls).
  using OnUrlEnded = std::function<void(Key key)>;

  // `loop` must outlive it.
  ObjectFetcher(EventLoop& loop, std::shared_ptr<Files> files, std::string folder,
                std::vector<JobStore> stores, uint64_t bytes, OpenStore open, OnEnd on_end,
                OnUrlEnded on_url_ended = nullptr);
  // Ends with kEndLimit, if Finish was not called.
  ~ObjectFetcher();
  ObjectFetcher(const ObjectFetcher&) = delete;
  ObjectFetcher& operator=(const ObjectFetcher&) = delete;

  void Want(Key key, std::string work);
  // By which the objects of a mini-batch are read that is wanted, or will be. One that is told
  // none, and has none that counts, comes to an end with kUnavailable.
  void TakeUrls(Key key, const job::ObjectUrls& urls);
  // The files of its objects may be removed.
  void LetGo(Key key);

  // Which store gives no objects now, for people; empty: all do (StoreTrouble).
  std::string WaitsFor() const;
  // Which store keeps this node waiting, and how, once that lasts; empty: none does. Asked for each
  // second or so, it knows since when.
  std::string StoreWait();

  // Ends all requests, and removes the folder; `on_end` is not called any more. False: the disk or
  // a store has hung for `limit`, and its threads are left (Thread::JoinOrLeave) with what they
  // use. What they leave in the folder removes the next agent of this node, or the end of the run.
  bool Finish(Duration limit);

  static constexpr Duration kEndLimit = seconds(2);

 private:
  struct Shared;  // by the threads
  static void Work(Shared& shared, size_t index);
  // As many threads as requests are allowed by now.
  void Grow();

  const std::shared_ptr<Shared> shared_;
  std::vector<Thread> threads_;
};

}  // namespace parallelrun::agent
