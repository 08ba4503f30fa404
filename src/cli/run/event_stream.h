// Writes lines to a descriptor that somebody may read slowly, or not any more, on a thread of its
// own: who adds a line never waits. A reader that has gone ends the stream and nothing else.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

#include "base/thread.h"
#include "base/time.h"

namespace parallelrun::cli {

class EventStream {
 public:
  static constexpr size_t kMostWaiting = 20'000;  // lines

  // The descriptor stays the caller's. SIGPIPE must be ignored.
  explicit EventStream(int fd);
  // Waits up to `kEndLimit` for the reader to take what is left.
  ~EventStream();

  enum class Keep { kNewest, kWhileThereIsRoom, kAlways };
  // `line` without its end. Of those of kNewest only the last one waits.
  void Add(std::string line, Keep keep = Keep::kWhileThereIsRoom);

 private:
  struct Line {
    std::string text;
    Keep keep;
  };
  static constexpr Duration kEndLimit = seconds(30);

  void Run();
  // False: nobody reads any more, or not in time.
  bool Write(const std::string& text);
  bool TimeIsOver();

  const int fd_;
  std::mutex mutex_;  // guards all below but the thread
  std::condition_variable wake_;
  std::deque<Line> lines_;
  bool gone_ = false;  // the reader
  bool ending_ = false;
  Instant end_by_;
  Thread thread_;
};

}  // namespace parallelrun::cli
