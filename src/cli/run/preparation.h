// What stands before a local run starts: everything that can be known is looked at and told in one
// list, the code is copied, the items of a trial are chosen, and the state folder is locked. Owns
// what the run holds until its end: its folder below TMPDIR, the lock, the launcher. Blocking I/O;
// from the main thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "cli/run/launcher.h"
#include "cli/run/local_job.h"
#include "cli/run/run_folder.h"
#include "cli/run/selection.h"
#include "rest_client/client.h"

namespace parallelrun::cli {

class Preparation {
 public:
  // Both must outlive it.
  Preparation(const LocalJob& job, const RunRequest& request) : job_(job), request_(request) {}

  // Nothing is written but below TMPDIR. kInvalid: the list of what is wrong. Once `stop`, a file
  // descriptor, is readable, Python is not waited for.
  Status Check(int stop);
  // Makes and locks the state folder; after Check. kUnavailable: another command works there.
  Status Lock();
  // Whether what Lock locked still has its name.
  Status CheckLocked() const;

  // After Check: what the user is told of what was found.
  std::vector<std::string> Notes() const;
  const api::Selection& selection() const { return chosen_.selection; }
  // After a Check that was good.
  Launcher& launcher() const { return *launcher_; }
  // Of the coordinator that the launcher will start.
  Result<std::unique_ptr<rest_client::RestClient>> Client() const;

  // A coordinator that was killed could not remove its token and its claim (docs/ledger.md). No
  // other one is at work here while the lock is held. `published`: it has ended well.
  void RemoveLeft(bool published) const;

 private:
  Error Unusable(const Error& why) const;

  const LocalJob& job_;
  const RunRequest& request_;
  const std::unique_ptr<Files> files_ = MakeSystemFiles();
  std::unique_ptr<File> lock_;  // of the state folder
  RunFolder folder_;
  std::string facts_;
  Chosen chosen_;
  std::unique_ptr<Launcher> launcher_;
};

}  // namespace parallelrun::cli
