// Side files of a job that stages them (docs/ledger.md, "Side files"): from the folders of the
// attempts that count to their places in the output folder, once it is decided which these are.
// What lies in those folders is a script's, and hostile: no link is followed. Blocking I/O; one
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "job/ids.h"
#include "job/side_list.h"
#include "output/own_places.h"

namespace parallelrun::output {

// Names at the top of an output folder that a job which stages side files has for itself: of its
// output, "" with SummaryOnly, and of what stands beside it; in a store these are its reports, too.
std::vector<std::string> ReservedNames(const std::string& output_file, bool in_store = false);
// Whether a side file has one of these, or stands with what stands beside it, as tokens and claims.
bool IsNameOfTheJob(const std::vector<std::string>& reserved, const std::string& name);

struct StagedPlaces {
  std::string output_folder;  // absolute
  std::string staging;        // the name of the folder there
  OwnPlaces own;              // of the job, where no side file goes
  std::vector<std::string> reserved;
};

class StagedFiles {
 public:
  // `files` outlives this.
  static Result<std::unique_ptr<StagedFiles>> Open(const Files& files, StagedPlaces places);

  // Whether those of one attempt can be moved: each is as its result says, or in its place already.
  // kInvalid: one is neither; kExists: something else is in its place, and `may_replace` is false.
  Status Check(job::BatchId id, const job::SideList& list, bool may_replace);
  // Whether each file of the attempt is in its folder or in its place, by its size.
  Result<bool> Has(const job::SideList& list) const;
  // Moves what is not in its place yet, of a list that was checked.
  Status Move(const job::SideList& list);
  // Makes all that was moved durable.
  Status Sync();

 private:
  StagedFiles(StagedPlaces places, std::unique_ptr<Folder> output)
      : places_(std::move(places)), output_(std::move(output)) {}

  std::string StagedName(const job::SideList& list, const job::SideFile& file) const;
  // Nothing where nothing has the name.
  Result<std::optional<FileFacts>> FactsOf(const std::string& name) const;
  bool IsOfTheJob(const std::string& name) const;
  Status CheckFoldersOf(const std::string& name);
  Status CheckPlace(const job::SideFile& file, bool may_replace);
  Result<bool> IsInPlace(const job::SideFile& file) const;
  Status MakeFoldersOf(const std::string& name);

  const StagedPlaces places_;
  const std::unique_ptr<Folder> output_;
  std::set<std::string> checked_;  // folders in whose place is none, or a folder
  std::set<std::string> made_;     // folders that are there
  std::set<std::string> changed_;  // folders with new entries, "" for the output folder
};

// Removes what attempts of a run have left in the output folder, if anything is there.
Status RemoveStaged(const Files& files, const std::string& output_folder, uint64_t run_id);

}  // namespace parallelrun::output
