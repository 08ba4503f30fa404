// Lists the files below the root of a folder store (folder_store.h says what becomes of links), one
// at a time, depth first and in byte order of their whole root-relative paths: a folder sorts as
// its name with '/' appended. Since the order depends on names only, a listing goes on behind any
// name without reading what sorts before it. Blocking I/O; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "store/folder/folder_store.h"
#include "store/store.h"

namespace parallelrun::store {

// The root of a store, once it is open.
struct OpenRoot {
  std::string path;                // the folder that names are relative to
  std::string file;                // the only name, where the root is a file
  std::unique_ptr<Folder> folder;  // of `path`, which it stays whatever becomes of that
};

// kNotFound where nothing is, kInvalid for what is neither folder nor file.
Result<std::unique_ptr<OpenRoot>> OpenFolderRoot(const Files& files, const std::string& path);

// kUnavailable once `stop` was asked for: a listing of millions of names must not hold up the end
// of a job.
Status CheckGoesOn(const std::stop_token& stop, const std::string& root);

class FolderListing final : public Listing {
 public:
  // All but `wanted` and `after` outlive the listing.
  FolderListing(const Files& files, const FolderRoot& settings, const OpenRoot& root, Wanted wanted,
                std::string after);

  // Before the first Next: sees to what must not be met, and reads the root's names.
  Status Begin();
  Result<std::optional<Listed>> Next() override;

 private:
  enum class Kind : uint8_t { kFile, kFolder, kFolderLink };
  struct Entry {
    uint64_t key;  // the 8 bytes behind what all names of the folder begin with, for fast sorting
    uint64_t offset;
    uint32_t length;
    Kind kind;
  };
  struct Frame {  // one folder on the way from the root
    FileId id;
    size_t prefix = 0;      // length of its path in path_, the last '/' included
    bool linked = false;    // reached through a link
    bool listed = false;    // a file below it was given
    std::string real_path;  // linked to a place in the root: that place, with '/'; else empty
    std::string names;      // folders end with '/'
    std::vector<Entry> entries;
    size_t next = 0;
  };

  Result<bool> Step();
  Status Open();
  Status CheckRootNotForbidden() const;
  Status Enter(Kind kind);
  Status AddEntry(const Folder& folder, const std::string& name, EntryKind kind, Frame& frame);
  Result<std::optional<Kind>> KindOf(const Folder& folder, const std::string& name,
                                     EntryKind kind) const;
  Result<std::optional<Kind>> LeadsNowhere(const Error& why) const;
  static void Sort(Frame& frame);
  void Leave();
  Status Replay();
  bool ListedByRealName(const std::string& path) const;
  Result<std::string> RealPathInRoot() const;
  Error Forbidden(const std::string& folder) const;
  std::string Absolute(std::string_view relative) const;

  const Files& files_;
  const FolderRoot& settings_;
  const OpenRoot& root_;
  const Wanted wanted_;
  const std::string after_;
  bool single_file_ = false;  // is still to be given
  bool replayed_ = false;
  std::string real_root_;
  std::set<FileId> forbidden_;
  std::set<FileId> taken_;  // reached through links, and files below them were given
  std::vector<Frame> frames_;
  std::string path_;  // of the entry at hand
};

}  // namespace parallelrun::store
