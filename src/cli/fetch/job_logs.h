// Parts of the logs of a job of a cluster, brought to this machine for the commands that read a log
// folder. Blocking; main thread.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "cli/cluster/kubectl.h"
#include "cli/fetch/job_reader.h"
#include "coordinator/log_tree/log_folder.h"

namespace parallelrun::cli {

// A job of a cluster, as it is named on the command line.
struct NamedJob {
  // Whether a flag says so.
  bool IsOfCluster() const { return !where.name_space.empty() || !where.context.empty(); }
  std::string name;
  KubectlWhere where;
  int wait = 300;  // as that of JobReader

  // "NAME --namespace TEAM", for a command line that is told to people.
  std::string Words() const;
};

class JobLogs {
 public:
  // Asks nobody yet.
  static Result<std::unique_ptr<JobLogs>> Make(const NamedJob& job);
  // Removes what was brought.
  ~JobLogs();
  JobLogs(const JobLogs&) = delete;
  JobLogs& operator=(const JobLogs&) = delete;

  // The job, as the API server has it; errors as those of JobReader::Look.
  Result<nlohmann::json> Look() const { return reader_->Look(); }
  // Brings what lies in a folder of the logs, as FindInLogs has it; a folder comes once. Errors as
  // those of JobReader::Bring. What is not there is no error.
  Status Bring(const std::string& below, const std::vector<std::string>& only);
  // Nothing more is brought: away with the pod, and signals act again. Who reads what is printed
  // may go away from now on.
  void Finish();
  // Those that were brought.
  Result<coordinator::LogFolder> Open() const;

 private:
  JobLogs(const NamedJob& job, std::string folder);

  const std::unique_ptr<Files> files_;
  std::unique_ptr<JobReader> reader_;  // none once it is finished
  const std::string folder_;
};

}  // namespace parallelrun::cli
