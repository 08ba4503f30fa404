// The file seam: everything that the coordinator does to a disk goes through it, so that tests can
// lose unsynced bytes and directory entries, tear writes, fill the disk, and let it hang or fail at
// any call. Paths are absolute. Thread-safe as a whole; one `File` or `Folder` is used by one
// thread at a time, except for ReadAt, ReadInto, and what a `Folder` does to names.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun {

enum class EntryKind : uint8_t { kFile, kFolder, kLink, kOther, kUnknown };

// The same for two names of one file or folder.
struct FileId {
  uint64_t device = 0;
  uint64_t number = 0;
  auto operator<=>(const FileId&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct FileFacts {
  EntryKind kind = EntryKind::kUnknown;
  FileId id;
  uint64_t size = 0;
  int64_t modified_ns = 0;  // since 1970
};

class File {
 public:
  virtual ~File() = default;  // closes, without a sync

  // Writes all of `bytes` at `offset`. On an error any part of them may have been written;
  // writing the same bytes again at the same offset is safe (never O_APPEND: a write repeated
  // over NFS must not double bytes).
  virtual Status WriteAt(uint64_t offset, std::string_view bytes) = 0;
  // Reads into `to`, and says how many bytes; fewer only at the end of the file.
  virtual Result<size_t> ReadInto(uint64_t offset, std::span<char> to) const = 0;
  // The same, with a new string.
  Result<std::string> ReadAt(uint64_t offset, size_t size) const;
  // It will be read from front to back: the system may read ahead.
  virtual void ExpectSequentialReads() const {}
  // fdatasync. After a failure the state of the bytes is unknown for ever: never retry, exit.
  virtual Status Sync() = 0;
  virtual Result<FileFacts> Stat() const = 0;
  Result<uint64_t> Size() const;
  // Cuts it to `size` bytes, which it has.
  virtual Status Cut(uint64_t size) = 0;
  // Makes room up to `size` without changing the visible length, so that later writes below it
  // cannot meet a full disk. kNoSpace when there is none; ok where the file system cannot do it.
  virtual Status Reserve(uint64_t size) = 0;
  // Gives back what was reserved beyond the length. Nobody may be writing.
  virtual Status Trim() = 0;
};

enum class Links : uint8_t {
  kFollow,
  // A name that leads through a link or out of the folder is kPermission; a link itself can be
  // renamed and removed.
  kRefuse,
};

// An open folder, which it stays whatever becomes of its path. Names are relative to it, and may
// lead through folders: "a/b.txt"; "." is the folder itself.
class Folder {
 public:
  virtual ~Folder() = default;

  // Tells `each` of every entry but "." and "..", in the file system's own order; its error ends
  // that. kUnknown: only a Stat can tell. One thread at a time.
  using EachEntry = std::function<Status(const std::string& name, EntryKind kind)>;
  virtual Status Entries(const EachEntry& each) const = 0;
  // Of what `name` is, or with kFollow leads to. What the client of a network volume knows of it is
  // not asked for again.
  virtual Result<FileFacts> Stat(const std::string& name, Links links) const = 0;
  virtual Result<std::unique_ptr<Folder>> OpenFolder(const std::string& name) const = 0;
  // These open files as those of Files do. None makes a folder.
  virtual Result<std::unique_ptr<File>> OpenRead(const std::string& name) const = 0;
  virtual Result<std::unique_ptr<File>> CreateExclusive(const std::string& name) = 0;
  virtual Result<std::unique_ptr<File>> OpenOrCreate(const std::string& name) = 0;
  // At the end of a file, which is made if missing; others may append to it meanwhile. For what may
  // be lost or be there twice.
  virtual Status Append(const std::string& name, std::string_view bytes) = 0;
  // One folder. kExists: something has its name.
  virtual Status MakeFolder(const std::string& name) = 0;
  // Of a file or a folder, also into another folder of one file system; replaces a file or an empty
  // folder.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // A file, a link or an empty folder.
  virtual Status Remove(const std::string& name) = 0;
  // A link with the text `target`; kExists where something has its name.
  virtual Status Link(const std::string& target, const std::string& name) = 0;
  // Makes the entries of the folder that holds `name` durable.
  virtual Status SyncFolderOf(const std::string& name) = 0;
};

class Files {
 public:
  virtual ~Files() = default;

  // Creates a file that must not exist; kExists otherwise.
  virtual Result<std::unique_ptr<File>> CreateExclusive(const std::string& path) = 0;
  // Opens an existing file for reading and writing; never creates; kNotFound otherwise.
  virtual Result<std::unique_ptr<File>> Open(const std::string& path) = 0;
  // Opens a file for reading and writing, made if missing, in place: for what must keep its name's
  // file, such as a mount of one.
  virtual Result<std::unique_ptr<File>> OpenOrCreate(const std::string& path) = 0;
  // Does not wait for a writer where a pipe has taken the file's place.
  virtual Result<std::unique_ptr<File>> OpenRead(const std::string& path) const = 0;
  // Atomic replacement within one folder or mount; kNotFound if `from` is gone.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // The same where `to` must not exist; kExists otherwise, and then nothing has changed. False: the
  // file system cannot tell that at one go, and nothing has changed.
  virtual Result<bool> RenameNew(const std::string& from, const std::string& to) = 0;
  virtual Status Remove(const std::string& path) = 0;
  // Makes the folder's entries durable.
  virtual Status SyncFolder(const std::string& path) = 0;
  // Creates missing folders and makes each new entry durable.
  virtual Status MakeFolders(const std::string& path) = 0;
  // Names in a folder, sorted by bytes, without "." and "..".
  virtual Result<std::vector<std::string>> List(const std::string& path) const = 0;
  virtual Result<bool> Exists(const std::string& path) const = 0;
  // Of what the path leads to; kNotFound where that is nothing.
  virtual Result<FileFacts> Stat(const std::string& path) const = 0;
  // The path without a link on its way.
  virtual Result<std::string> RealPath(const std::string& path) const = 0;
  // How the folder's handle treats links below it.
  virtual Result<std::unique_ptr<Folder>> OpenFolder(const std::string& path,
                                                     Links links) const = 0;
  // An advisory lock on a file, made if missing and never through a link, for as long as the handle
  // lives, whatever ends the process. kUnavailable: somebody has it.
  virtual Result<std::unique_ptr<File>> Lock(const std::string& path) = 0;
  // Whether somebody has it now. What cannot be told is taken for locked.
  virtual bool IsLocked(const std::string& path) const = 0;
  // Bytes free to this user on the file system that holds `path`.
  virtual Result<uint64_t> FreeSpace(const std::string& path) const = 0;
};

// The real one (system_files.cc).
std::unique_ptr<Files> MakeSystemFiles();

// The folder that holds `path`, or "." where it is a name alone.
std::string FolderOf(const std::string& path);

// Writes `bytes` as `path` so that a reader sees the old file or the whole new one, and a crash
// afterwards loses neither: temporary file in the same folder, sync, rename, folder sync.
Status PublishFile(Files& files, const std::string& path, std::string_view bytes);

}  // namespace parallelrun
