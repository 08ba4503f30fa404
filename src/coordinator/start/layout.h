// Where everything of a job lies, once its volumes are folders: on a cluster /mnt/<name>, locally
// what --volume says. Pure, thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/job.h"
#include "base/error.h"
#include "plan/planner.h"
#include "store/wished.h"

namespace parallelrun::coordinator {

using Volumes = std::map<std::string, std::string>;  // name to absolute folder

// What `where` names, normalised and without a "/" at its end. kInvalid, with `field`: its volume
// is no folder here.
Result<std::string> PathOf(const api::VolumePath& where, const Volumes& volumes,
                           const std::string& field);

struct JobLayout {
  std::string output_folder;
  std::string output_path;  // of the appended file, or its URL; empty with SummaryOnly
  // With output.sideFiles: Staged: what the script writes is the publisher's to bring to its place.
  bool stages = false;
  std::string staging_folder;  // of a run that stages it, once that is known; else empty
  // What is published: the appended file, or with SummaryOnly the list of staged side files; empty:
  // nothing is.
  std::string published_path;
  // Of an output in a store; else both are empty. The output folder is then for what the script
  // writes besides.
  std::string output_store;
  std::string output_name;  // in the store; with SummaryOnly that of the list of side files
  // With logs in a store what is gathered of them until they are sent there.
  std::string log_folder;
  std::string log_store;  // its name; empty: they stay in that folder
  std::string log_url;    // where in it
  std::string state_folder;
  // Of a state in a store, whose folder then has what is of this machine alone; else both are
  // empty.
  std::string state_store;
  std::string state_url;                     // that holds the states of jobs
  std::vector<plan::PlanInput> inputs;       // with rank mini-batches just one, which has no folder
  std::vector<plan::PlanInput> side_inputs;  // those in stores
  // What $(inputs.NAME), $(sideInputs.NAME) and $(output) stand for; of a side input in a store
  // what stands for its path on each node (job/side_inputs.h).
  std::map<std::string, std::string> placeholders;
  std::map<std::string, store::Wished> stores;  // how each is asked, by name
  // Folders that no input may contain or lie in: logs, state, and that of the output, unless inputs
  // lie below that and the output is one file.
  std::vector<std::string> forbidden;
};

// `store_keys`: the folders of files with the keys of stores (store::KeyFiles), by name; of the
// others, credentials are what this process is set up with. kInvalid names the field of a volume
// that is not mapped, or of an input that cannot be grouped by the partition keys.
Result<JobLayout> LayOut(const api::Job& job, const Volumes& volumes,
                         const std::map<std::string, std::string>& store_keys = {});

// What stands in front of side files' names in the store of an output: "" or "a/b/".
std::string SideFolderOf(const JobLayout& layout);

}  // namespace parallelrun::coordinator
