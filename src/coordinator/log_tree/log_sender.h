// LogSender brings the logs of a run to their store (docs/logs.md, "In a store"): segments while it
// runs, in a thread of its own, and the tree at its end. A store that is slow, away or refuses
// holds up nobody but that thread; segments wait for it in the spool, within its bounds.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "base/time.h"
#include "coordinator/log_tree/log_folder.h"
#include "coordinator/log_tree/log_spool.h"
#include "coordinator/log_tree/stored_logs.h"

namespace parallelrun::coordinator {

class LogSender {
 public:
  static constexpr Duration kLook = seconds(1);    // for segments that are due
  static constexpr Duration kAgain = seconds(10);  // after the store has failed

  LogSender(std::unique_ptr<StoredLogs> store, std::shared_ptr<LogSpool> spool)
      : store_(std::move(store)), spool_(std::move(spool)) {}
  ~LogSender();
  LogSender(const LogSender&) = delete;
  LogSender& operator=(const LogSender&) = delete;

  // Begins with segments. `tell` hears what is wrong with the store when it fails for the first
  // time, in the thread; from then on only the log does.
  void Start(std::function<void(const std::string& wrong)> tell);
  // Once no more comes: no more segments are sent, but those of nodes whose files are not whole in
  // the tree; then all of the tree is. Again after an error.
  Status SendAll(const LogFolder& folder);
  std::string Location() const { return store_->Location(); }

  // What goes on fails soon.
  void Stop();
  // After Stop. False: the thread needs longer than `limit`.
  bool Finish(Duration limit) { return !thread_.joinable() || thread_.JoinFor(limit); }

 private:
  void Run();
  Status Round();
  Status SendSegments(bool all);

  const std::unique_ptr<StoredLogs> store_;
  const std::shared_ptr<LogSpool> spool_;
  const SystemClock clock_;
  std::function<void(const std::string& wrong)> tell_;
  bool begun_ = false;  // the readme is there; in the thread
  std::mutex sending_;  // held by who sends segments
  std::mutex mutex_;    // guards what follows
  std::condition_variable wake_;
  bool ends_ = false;
  Thread thread_;
};

}  // namespace parallelrun::coordinator
