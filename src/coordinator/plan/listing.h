// Lists the files below a folder, one at a time, depth first and in byte order of their whole
// root-relative paths: a folder sorts as its name with '/' appended. The order depends on names
// only, so a listing can go on behind any name without reading what sorts before it.
//
// Left out: names that begin with a dot, folders named lost+found, what is not a regular file,
// what the pattern does not match, and what an exclude pattern matches (a folder that one matches
// is left out with all below it).
//
// Symbolic links to files are files. A link to a folder is followed, but nothing is listed twice:
// what the same listing shows under its real name is shown under that one only, of several links to
// one folder outside of the root the first one counts, and a folder that is its own ancestor is not
// entered. A link that leads nowhere is an error, for it would be data missing in silence.
//
// Memory: the names of one folder for each level, about 24 bytes a file beyond the name. Blocking
// I/O; no folder but the root is held open between calls. Not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "coordinator/plan/glob.h"
#include "job/records.h"

namespace parallelrun {

struct ListingSettings {
  std::string input;    // name, for messages
  std::string root;     // absolute: a folder, or a single file
  std::string pattern;  // coordinator/plan/glob.h
  std::vector<std::string> exclude;
  std::vector<std::string> forbidden;  // absolute folders that must not be met
  std::stop_token stop{};              // once it is asked for, nothing more is read
};

class Listing {
 public:
  // The names that sort after `after` (a name that this listing gave before, or empty: all).
  Listing(const Files& files, ListingSettings settings, std::string after = "");

  // Opens the root; Next() does it where it was not done.
  Status Start();
  // The next file, relative to folder(), or nullopt at the end; the view holds until the next call.
  // kNotFound for a missing root, kInvalid for a name that is not UTF-8 or holds a line break, a
  // forbidden folder and a link to nowhere, kUnavailable once `stop` was asked for, else what the
  // file system says. After an error the listing is over.
  Result<std::optional<std::string_view>> Next();

  // The folder that names are relative to: the root, or the one that holds it when the root is a
  // file. Only after Start().
  const std::string& folder() const { return folder_; }

  // Size and modification time of a listed file, or nullopt when it is gone by now. Servers of
  // network volumes are not asked anew for what their client knows.
  Result<std::optional<FileStamp>> Stamp(const std::string& name) const;

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

  Result<std::optional<std::string_view>> Step();
  Status Open();
  Error Over(const Error& error);
  Status CheckGoesOn() const;
  Status CheckRootNotForbidden() const;
  Status Enter(Kind kind);
  Status AddEntry(const Folder& folder, const std::string& name, EntryKind kind, Frame& frame);
  Result<std::optional<Kind>> KindOf(const Folder& folder, const std::string& name,
                                     EntryKind kind) const;
  Result<std::optional<Kind>> LeadsNowhere(const Error& why) const;
  static void Sort(Frame& frame);
  void Leave();
  Status Replay();
  bool Excluded(std::string_view path) const;
  bool ListedByRealName(const std::string& path) const;
  Result<std::string> RealPathInRoot() const;
  Error BadName() const;
  Error Forbidden(const std::string& folder) const;
  std::string Absolute(std::string_view relative) const;

  const Files& files_;
  ListingSettings settings_;
  Glob pattern_;
  std::vector<Glob> exclude_;
  std::string after_;
  bool started_ = false;
  bool single_file_ = false;
  bool replayed_ = false;
  std::unique_ptr<Folder> root_;
  std::string folder_;
  std::string real_root_;
  std::set<FileId> forbidden_;
  std::set<FileId> taken_;  // reached through links, and files below them were given
  std::vector<Frame> frames_;
  std::string path_;  // of the entry at hand
};

}  // namespace parallelrun
