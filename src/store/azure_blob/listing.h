// The blobs of a container behind a prefix, page by page, in the order of their bytes.
//
// Azure lists in that order where folders are only parts of names: there all is asked for as one
// list. Where an account has a hierarchical namespace its folders are things of their own, are
// listed as such, and what is in one comes right behind it: "a", "a/1", "a-b", though '-' is before
// '/'. So the first folder in a list tells that from here on each folder is asked for by itself,
// and its names are laid into order here; what came before it was in order all the same.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/azure_blob/answers.h"
#include "store/azure_blob/container.h"
#include "store/objects/wanted_names.h"
#include "store/store.h"

namespace parallelrun::store::azure_blob {

// The blobs that begin with a prefix, and with a delimiter the folders in place of what is in them.
// In order, however the server has laid them into its pages: of a page, what is before its last
// name can have nothing else before it.
class Level {
 public:
  // `by_folder`: the prefix is empty or ends in '/', and folders are given as they are.
  Level(std::string prefix, bool by_folder) : prefix_(std::move(prefix)), by_folder_(by_folder) {}

  struct Entry {
    std::string key;  // of a blob; of a folder it ends in '/'
    std::optional<Found> found;
    bool operator>(const Entry& other) const { return key > other.key; }
  };
  // Nothing at the end.
  Result<std::optional<Entry>> Next(Container& container);

  // Whether the last page has told that there are folders, when these were not asked for: what it
  // held is not given.
  bool met_folders() const { return met_folders_; }

  // The keys of blobs that ended in '/' and held bytes since the last call: they are not given.
  std::vector<std::string> TakeNoFiles() { return std::exchange(no_files_, {}); }

 private:
  Status NextPage(Container& container);

  std::string prefix_;
  bool by_folder_;
  std::vector<Entry> held_;  // a heap, the least in front
  std::vector<std::string> no_files_;
  std::string given_;    // last
  std::string reached_;  // up to here nothing more comes
  std::string marker_;   // of the next page
  bool begun_ = false;
  bool met_folders_ = false;
};

// Whether any blob's name begins with the container's prefix, or one stands for that folder;
// without a prefix the container is there that answers.
Result<bool> HoldsAny(Container& container);

class Listing final : public store::Listing {
 public:
  // Names behind `after`; "": all. The container must outlive it.
  Listing(Container& container, Wanted wanted, const std::string& after);

  // Left out, beside what is not wanted: blobs that stand for folders; and told (Wanted::no_file)
  // such as hold bytes.
  Result<std::optional<Listed>> Next() override;

 private:
  // Whether a key, or all in a folder, is not behind `after_`.
  bool IsBefore(const std::string& key) const;
  Error OutOfOrder(const std::string& key) const;

  Container& container_;
  const std::string root_;  // the prefix, with its '/'
  WantedNames wanted_;
  std::string after_;        // a key: only what is behind it is wanted
  std::string last_;         // the key that came last
  std::vector<Level> open_;  // the folders on the way, the innermost last
};

}  // namespace parallelrun::store::azure_blob
