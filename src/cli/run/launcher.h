// Starts the programs of a local run: the coordinator, which gets the listening socket, and for
// each node a guardian with its agent below it. From the main thread only (see
// agent/processes/spawn.h).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "api/selection.h"
#include "base/error.h"
#include "base/fd.h"
#include "cli/run/local_job.h"
#include "cli/run/programs.h"
#include "coordinator/start/code_files.h"

namespace parallelrun::cli {

class Launcher {
 public:
  // `job` and `request` must outlive it. `folder` is the run's own, below TMPDIR.
  Launcher(const LocalJob& job, const RunRequest& request, std::string folder);

  // What of the inputs is taken; all of them if it is not called.
  void Take(api::Selection selection) { selection_ = std::move(selection); }
  // Copies the code, which holds `script`, into the folder, and listens on a free port of
  // 127.0.0.1.
  Status Prepare(const Programs& programs, const std::string& script);
  // That copy.
  std::string CodeCopy() const { return folder_ + "/code"; }
  // What the user is told of the copy.
  const std::vector<std::string>& notes() const { return notes_; }

  // Of the coordinator.
  std::string Url() const;
  std::string OperatorToken() const;
  // Of the live page, with the token of a viewer behind "#".
  std::string PageUrl() const;

  Result<pid_t> StartCoordinator();

  struct NodeProcess {
    pid_t guardian = 0;
    Fd watch;  // when it closes, the guardian kills all that is below it, and ends
  };
  // `attempt` counts the starts of this node: each works in a folder of its own.
  Result<NodeProcess> StartNode(size_t index, int attempt);

  std::string CoordinatorLog() const;
  std::string NodeLog(size_t index) const;
  // What the newest coordinator left (docs/coordinator-api.md); "": nothing yet. They are in
  // memory: no full disk takes them.
  std::string LastWords() const;

 private:
  const LocalJob& job_;
  const RunRequest& request_;
  const std::string folder_;
  const std::string key_;
  const std::string uid_;
  Programs programs_;
  uint64_t code_digest_ = 0;
  coordinator::CodeFiles code_files_;
  api::Selection selection_;
  std::vector<std::string> notes_;
  uint16_t port_ = 0;
  Fd listening_;
  Fd words_;
};

}  // namespace parallelrun::cli
