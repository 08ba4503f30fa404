// Brings objects of stores onto this node's disk, as Cache decides, while the processes work. Each
// object is a file of its own, in a folder with its number, below which stands its key: scripts
// read labels from names and folders, and two objects called "a" and "a/b" can both be files.
//
// A version that is not the planned one is kStale; a store that cannot be reached now is asked
// again, for as long as the mini-batch is wanted.
//
// Thread-safety: made, used and destroyed on the loop's thread, where `on_end` is called too; the
// work is done on threads of its own. The folder is this object's, from its making, which removes
// what a predecessor left there, to its end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/agent_config.h"
#include "agent/core/agent_types.h"
#include "base/error.h"
#include "base/event_loop.h"
#include "base/thread.h"

namespace parallelrun {

// Where objects of a node lie: beside its working directory, which is another one for each agent,
// so that the next agent finds what a killed one has left.
std::string ObjectFolder(const std::string& work_folder, uint32_t node);

class ObjectFetcher {
 public:
  // Once for each mini-batch that is wanted, unless it is let go of before: its Work with files in
  // place of objects, or why there is none.
  using OnEnd = std::function<void(agent::Key key, Result<std::string> work)>;

  ObjectFetcher(EventLoop& loop, std::string folder, std::vector<JobStore> stores, uint64_t bytes,
                OnEnd on_end);
  // Ends all requests, and removes the folder.
  ~ObjectFetcher();
  ObjectFetcher(const ObjectFetcher&) = delete;
  ObjectFetcher& operator=(const ObjectFetcher&) = delete;

  void Want(agent::Key key, std::string work);
  // The files of its objects may be removed.
  void LetGo(agent::Key key);

 private:
  struct Shared;  // by the threads
  static void Work(Shared& shared);

  const std::shared_ptr<Shared> shared_;
  std::vector<Thread> threads_;
};

}  // namespace parallelrun
