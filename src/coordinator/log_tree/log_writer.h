// LogWriter does what is written into a job's log tree while the job runs, in a thread of its own:
// what nodes upload, and lines of the coordinator's. A log volume that hangs stops that thread, and
// nobody else. What waits for it is bounded: an upload is refused beyond the bounds, and its node
// sends it again; of lines the oldest are dropped, which one line tells once the volume answers.
//
// An upload keeps its node's place until it is written or passed over. So the next one of that node
// never overtakes it, and what is repeated lies where it lay. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/thread.h"
#include "base/time.h"
#include "coordinator/log_tree/log_sink.h"
#include "coordinator/log_tree/log_spool.h"

namespace parallelrun::coordinator {

class LogWriter {
 public:
  static constexpr size_t kMostUploadBytes = size_t{64} << 20;
  static constexpr size_t kMostLineBytes = size_t{4} << 20;

  explicit LogWriter(LogSink sink);
  // Waits for the thread. Where a volume hangs that may be for ever: ask Finish first.
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // Before the first upload: what nodes send is kept in segments too (LogSink).
  void KeepSegments(std::shared_ptr<LogSpool> spool, uint64_t most_here = LogSink::kMostHere);

  struct Upload {
    uint32_t node = 0;
    std::vector<std::string> path;
    uint64_t offset = 0;
    bool truncate = false;
    std::string bytes;
    // Whether its caller has gone, who will send it again: then it is passed over. In the thread.
    std::function<bool()> given_up = [] { return false; };
    // What became of it, in the thread.
    std::function<void(const Status&)> done = [](const Status&) {};
  };
  // Whether an upload of that node could be taken now: nothing of it waits, and not too much at
  // all.
  bool HasRoom(uint32_t node) const;
  // False: there is no room for it, and `done` is never called.
  bool Write(Upload upload);

  // Adds whole lines to a file of the tree.
  void Append(std::string name, std::string lines);

  // Waits until all that came is written. False: it is not within `limit`.
  bool Settle(Duration limit);

  // No more comes. True once all is written; false: it is not within `limit`.
  bool Finish(Duration limit);

 private:
  struct Lines {
    std::string name;
    std::string text;
  };

  void Run();

  const SystemClock clock_;
  LogSink sink_;              // the thread's, from the first upload on
  mutable std::mutex mutex_;  // guards all below but the thread
  std::shared_ptr<LogSpool> spool_;
  std::condition_variable wake_;
  std::condition_variable settled_;
  bool writing_ = false;
  std::deque<Upload> uploads_;
  std::set<uint32_t> uploading_;  // nodes with an upload that waits or is written
  size_t upload_bytes_ = 0;       // of these
  std::deque<Lines> lines_;
  size_t line_bytes_ = 0;
  uint64_t dropped_bytes_ = 0;  // and not told yet
  bool ends_ = false;
  Thread thread_;
};

}  // namespace parallelrun::coordinator
