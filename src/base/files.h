// The file seam: everything the ledger and the published output do to a disk goes through it, so
// that tests can lose unsynced bytes and directory entries, tear writes and fill the disk.
// Paths are absolute. Thread-safe as a whole; one `File` is used by one thread at a time, except
// for ReadAt.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace parallelrun {

class File {
 public:
  virtual ~File() = default;  // closes, without a sync

  // Writes all of `bytes` at `offset`. On an error any part of them may have been written;
  // writing the same bytes again at the same offset is safe (never O_APPEND: a write repeated
  // over NFS must not double bytes).
  virtual Status WriteAt(uint64_t offset, std::string_view bytes) = 0;
  // Reads up to `size` bytes; fewer only at the end of the file.
  virtual Result<std::string> ReadAt(uint64_t offset, size_t size) const = 0;
  // fdatasync. After a failure the state of the bytes is unknown for ever: never retry, exit.
  virtual Status Sync() = 0;
  virtual Result<uint64_t> Size() const = 0;
  // Makes room up to `size` without changing the visible length, so that later writes below it
  // cannot meet a full disk. kNoSpace when there is none; ok where the file system cannot do it.
  virtual Status Reserve(uint64_t size) = 0;
  // Gives back what was reserved beyond the length. Nobody may be writing.
  virtual Status Trim() = 0;
};

class Files {
 public:
  virtual ~Files() = default;

  // Creates a file that must not exist; kExists otherwise.
  virtual Result<std::unique_ptr<File>> CreateExclusive(const std::string& path) = 0;
  // Opens an existing file for reading and writing; never creates; kNotFound otherwise.
  virtual Result<std::unique_ptr<File>> Open(const std::string& path) = 0;
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
  // Bytes free to this user on the file system that holds `path`.
  virtual Result<uint64_t> FreeSpace(const std::string& path) const = 0;
};

// The real one.
std::unique_ptr<Files> MakeSystemFiles();

// Writes `bytes` as `path` so that a reader sees the old file or the whole new one, and a crash
// afterwards loses neither: temporary file in the same folder, sync, rename, folder sync.
Status PublishFile(Files& files, const std::string& path, std::string_view bytes);

}  // namespace parallelrun
