// The manifest of a script's own results (SummaryOnly; docs/ledger.md, "Manifest"): which files a
// run has left in its output folder, so that the run that starts over removes those and no others.
// Blocking I/O; for one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/error.h"
#include "base/files.h"
#include "output/own_places.h"

namespace parallelrun::output {

class ResultManifest {
 public:
  // What it names, at most; what a run has left besides is never removed.
  static constexpr size_t kMostNames = 1000000;

  struct Places {
    std::string output_folder;
    std::string state_folder;  // where the manifest lies
    OwnPlaces own;
  };
  // `files` must outlive this.
  ResultManifest(Files& files, Places places, uint64_t run_id, size_t most_names = kMostNames);

  // The run begins with an empty history, and nobody writes there yet: removes what the run before
  // has left, as far as it is unchanged, and notes what lies there then, which is not of this run.
  // How many files were removed.
  Result<uint64_t> Begin();
  // The manifest that lies there was written by another run: this one never came to its Begin().
  bool IsOfAnotherRun() const;
  // The run goes on: what has come since its End() is not of it.
  Status GoOn();
  // The run is over or stopped, and nobody of it writes any more: names what has come since it
  // began.
  Status End();

 private:
  struct Head {
    uint64_t run_id = 0;
    bool over = false;
  };
  struct Entry {
    std::string path;  // relative to the output folder; a folder's ends with a slash
    uint64_t bytes = 0;
    int64_t modified_ns = 0;
    bool before = false;  // was there when the run began
  };
  using Names = std::unordered_set<uint64_t>;  // their hashes: there may be very many
  class Writer;

  // nullopt: there is none, or one that cannot be understood.
  std::optional<Head> Read(const std::function<void(const Entry&)>& each) const;
  // Each file, and each folder behind what is in it. Its error ends the walk.
  Status Walk(const std::function<Status(const Entry&)>& each) const;
  // The same below `folder`, which is `below` of the output folder.
  Status WalkFolder(const Folder& folder, const std::string& below, uint64_t device,
                    const std::function<Status(const Entry&)>& each) const;
  uint64_t RemoveWhatWasLeft() const;
  // What cannot be told from what a run left.
  Status Forget();

  Files& files_;
  const Places places_;
  const uint64_t run_id_;
  const size_t most_names_;
  const std::string path_;
};

}  // namespace parallelrun::output
