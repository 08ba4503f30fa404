// The log tree of one run in a store (docs/logs.md, "In a store"): each of its files is an object
// below a prefix that is the run's own. Nothing of another run is replaced or removed, so nobody
// needs to know whose it is. Blocking I/O; thread-safe. Errors say which location it was.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"
#include "coordinator/log_tree/log_folder.h"
#include "ledger/state_notes.h"
#include "store/store.h"
#include "store/write_store.h"

namespace parallelrun::coordinator {

// The prefix of a run, "20261123T215747Z-00a1b2c3d4e5f607": these sort by the time at which runs
// began. Kept beside the state, so that each coordinator of the run has the same.
Result<std::string> StoredLogsName(ledger::StateNotes& notes, uint64_t run_id, WallTime now);

// Where the segments of a run are, below its prefix.
inline constexpr char kSegments[] = "segments/";

class StoredLogs {
 public:
  // Names of the store are relative to the folder of all runs; `run` is the prefix of this one.
  // `listed` is the same place; `stop` ends what waits for either.
  StoredLogs(std::unique_ptr<store::WriteStore> store, std::unique_ptr<store::Store> listed,
             std::string run, std::stop_source stop);

  // Where they are, for people: "s3://bucket/job/logs/20261123T215747Z-00a1b2c3d4e5f607".
  std::string Location() const { return store_->Location(run_); }

  // Writes the readme. So who may not write there hears of it while the job still runs.
  Status Begin();
  // Writes the files of the tree as they are now, job_result.txt last: whoever sees it sees all
  // else. But for previous/, for those runs have prefixes of their own. A file that the store
  // cannot take keeps no other one from it; the first such error is given. What `before_result`
  // does comes between.
  Status Send(
      const LogFolder& folder,
      const std::function<Status()>& before_result = [] { return Status(); });
  // Writes one that never changes; `name` is node and name, "0/000001-00000003".
  Status SendSegment(const std::string& name, const std::string& text);
  // Removes those of nodes that `of` says yes to, the oldest of a node first: whoever reads what is
  // left of them after the files of that node finds these as they are. At most so many, for each is
  // a request: a long run with many nodes would not end in time.
  static constexpr size_t kMostRemoved = 20000;
  Status RemoveSegments(const std::function<bool(const std::string& node)>& of,
                        size_t most = kMostRemoved);
  // What goes on fails soon, and so does all that comes.
  void Stop() { stop_.request_stop(); }

 private:
  Status SendFile(const LogFolder& folder, const std::string& name);
  Status Write(const std::string& name, const std::function<Status(const store::Expected&)>& write,
               store::Expected expected);
  Status Upload(const File& file, uint64_t size, const std::string& name,
                const store::Expected& expected);
  std::string Named(const std::string& name) const { return run_ + "/" + name; }
  std::string NameOfSegment(const std::string& name) const { return Named(kSegments) + name; }

  std::stop_source stop_;
  const std::unique_ptr<store::WriteStore> store_;
  const std::unique_ptr<store::Store> listed_;
  const std::string run_;
};

}  // namespace parallelrun::coordinator
