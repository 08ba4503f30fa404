// Logs that lie in a store (docs/logs.md, "In a store"), brought to this machine for the commands
// that read a log folder. Names in a store are hostile: nothing is written but below the folder.
// Blocking I/O.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/log_tree/log_folder.h"
#include "store/store.h"
#include "store/wished.h"

namespace parallelrun::cli {

// What of a log tree is wanted: files ("job_result.txt"), and folders with all below
// ("user/error/").
using LogParts = std::vector<std::string>;

// The prefix of a run below the root of `store`, with a slash at its end: of several the newest,
// "" where the root is that of a run itself. kNotFound: there is none.
Result<std::string> NewestStoredRun(store::Store& store);

// Brings what is there of these parts of a run, files as well as segments (log_segment.h), which
// are later than the files of their node; what is not there is no error.
Status BringLogs(store::Store& store, const std::string& run, const LogParts& parts,
                 const coordinator::LogFolder& to);

// A folder with what was brought; it goes with this.
class StoredLogFolder {
 public:
  // `wished.url`: where the logs of a job are, or of one of its runs.
  static Result<std::unique_ptr<StoredLogFolder>> Bring(const store::Wished& wished,
                                                        const LogParts& parts);
  ~StoredLogFolder();
  StoredLogFolder(const StoredLogFolder&) = delete;
  StoredLogFolder& operator=(const StoredLogFolder&) = delete;

  const coordinator::LogFolder& folder() const { return folder_; }
  // Of the run, for people.
  const std::string& url() const { return url_; }

 private:
  StoredLogFolder(std::unique_ptr<Files> files, coordinator::LogFolder folder)
      : files_(std::move(files)), folder_(std::move(folder)) {}

  const std::unique_ptr<Files> files_;
  const coordinator::LogFolder folder_;
  std::string url_;
};

}  // namespace parallelrun::cli
