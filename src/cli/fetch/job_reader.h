// Reads what a job of a cluster has written, by kubectl and with its user's own rights: in the pod
// of its coordinator while that runs, for it has the volumes; else in a pod of our own, which is
// removed. Says on stderr what it waits for. Blocking; main thread.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "cli/cluster/interruption.h"
#include "cli/cluster/kubectl.h"
#include "cli/fetch/arriving_files.h"
#include "cli/fetch/wanted_files.h"

namespace parallelrun::cli {

class JobReader {
 public:
  // `wait`: seconds until a pod of ours must run, and the coordinator of an ended job not.
  JobReader(KubectlWhere where, std::string job, int wait);
  // Removes the pod. Signals wait until then.
  ~JobReader();
  JobReader(const JobReader&) = delete;
  JobReader& operator=(const JobReader&) = delete;

  // The job, as the API server has it. An error without words: kubectl has said why.
  Result<nlohmann::json> Look() const;

  struct Came {
    uint64_t files = 0;
    uint64_t bytes = 0;
  };
  // What of the job is wanted, by its object.
  using Find = std::function<Result<WantedFiles>(const nlohmann::json& job)>;
  // Brings it, in three tries; what came of one that was cut is forgotten. kCorrupt, kUnavailable:
  // it did not come whole; else there is nothing to bring, or no right to. `arriving` is not
  // finished by it. All that one reader brings is on one volume of the job.
  Result<Came> Bring(const Find& find, ArrivingFiles& arriving);

  // A signal came, which acts once this is gone.
  bool interrupted() const { return interruption_.came(); }

 private:
  // What is to be executed where.
  struct Source {
    std::string pod;
    std::string container;
  };
  struct Found {
    nlohmann::json job;
    Source source;
  };

  Result<Came> Try(const Find& find, ArrivingFiles& arriving);
  Result<Source> SourceOf(const nlohmann::json& job, const WantedFiles& wanted);
  Status MakeReader(const nlohmann::json& job, const WantedFiles& wanted,
                    const nlohmann::json& coordinator);
  Status AwaitReader() const;
  Result<Came> Receive(const Source& source, const WantedFiles& wanted,
                       ArrivingFiles& arriving) const;
  std::vector<std::string> Words(const std::vector<std::string>& more) const;
  Result<nlohmann::json> Get(std::vector<std::string> more) const;
  void RemoveReader() const;

  const KubectlWhere where_;
  const std::string job_;
  const int wait_;
  const SystemClock clock_;
  const Interruption interruption_;  // it outlives what is to be taken away
  std::string reader_;               // a pod of ours, to be removed
  std::optional<Found> found_;       // by the last try, if it went well: the next one asks there
};

// Says why it could not be read, unless kubectl has, and returns the command's exit status.
int TellReadError(const Error& why);

}  // namespace parallelrun::cli
