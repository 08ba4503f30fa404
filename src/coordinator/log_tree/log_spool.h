// LogSpool keeps what nodes upload until it is in a store: segments (log_segment.h) as files beside
// the state, so that a coordinator that dies loses nothing of what it has taken. What waits is
// bounded. A segment is closed after some seconds, or a MiB, and is never changed again. Its name
// says node, epoch and number, and those of a node sort by their order. Blocking I/O; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "coordinator/log_tree/log_folder.h"

namespace parallelrun::coordinator {

class LogSpool {
 public:
  static constexpr Duration kLongest = seconds(10);              // from its first record on
  static constexpr uint64_t kFull = uint64_t{1} << 20;           // bytes of a segment
  static constexpr uint64_t kMostWaiting = uint64_t{256} << 20;  // bytes of all

  // What coordinators of this run before this one have left in `folder` is ready; that of other
  // runs is removed. Made if missing.
  static Result<std::shared_ptr<LogSpool>> Open(Files& files, const std::string& folder,
                                                uint64_t run_id, uint32_t epoch,
                                                uint64_t most_waiting = kMostWaiting);

  bool HasRoom() const;
  // In the order of the calls. An error: it is not kept.
  Status Add(uint32_t node, const std::string& record, Instant now);

  // Node and name, as "0" and "000001-00000003".
  struct Segment {
    std::string node;
    std::string name;
  };
  // Closes those that are due by now, or all, and gives all that are closed. While one of a node
  // waits, the next grows until it is full: a store that is away for hours makes no more of them.
  std::vector<Segment> Ready(Instant now, bool all);
  // Its whole records.
  Result<std::string> Read(const Segment& segment) const;
  // It is in the store, or nobody wants it any more.
  void Done(const Segment& segment);

  // Some file of that node is in its segments alone: these are never removed from the store.
  Status SetApart(uint32_t node);
  bool IsApart(const std::string& node) const;

 private:
  struct OpenSegment {
    Segment segment;
    Instant since;
    uint64_t bytes = 0;
  };

  LogSpool(LogFolder folder, uint32_t epoch, uint64_t most_waiting)
      : folder_(std::move(folder)), epoch_(epoch), most_waiting_(most_waiting) {}
  void TakeLeft();
  static std::string FileOf(const Segment& segment) { return segment.node + "." + segment.name; }

  const LogFolder folder_;
  const uint32_t epoch_;
  const uint64_t most_waiting_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<uint32_t, OpenSegment> open_;
  std::map<std::string, std::pair<Segment, uint64_t>> closed_;  // by file, with their bytes
  std::set<std::string> apart_;
  uint64_t bytes_ = 0;
  uint64_t last_ = 0;
};

}  // namespace parallelrun::coordinator
