// The files that objects become on a node's disk: each in a folder with its number, below which
// stands its key: scripts read labels from names and folders, and two objects called "a" and "a/b"
// can both be files. Nothing of it must outlive the machine, so nothing is synced.
//
// Thread-safe, but for Begin, which comes first, and for two calls about one number other than
// WritePart. Blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "job/work_objects.h"
#include "store/store.h"

namespace parallelrun::agent {

// What such a file takes of a disk, as those count that have blocks of 4 KiB: whole blocks, and one
// for each folder on the way to it. A budget in bytes of objects would let a million small ones
// take the disk that was meant for a few large ones.
uint64_t RoomOf(const std::string& name, uint64_t size);

class ObjectFiles {
 public:
  // The folder is this object's, as long as it lives; `files` must outlive it.
  ObjectFiles(Files& files, std::string folder) : files_(files), folder_(std::move(folder)) {}

  const std::string& folder() const { return folder_; }

  // Removes what a predecessor left, and makes the folder.
  Status Begin();
  // The object as FOLDER/number/name, where `name` is a path without "." and ".."; of a range that
  // alone, at its offset behind a hole, which takes no room. On an error nothing of it stays.
  // kStale: it is shorter than it was.
  Status Write(uint64_t number, const std::string& name, const store::Object& object,
               const job::ByteRange& range = {});
  // The same in parts. First the file, without a byte: which bytes of the object belong into it.
  Result<job::ByteRange> Make(uint64_t number, const std::string& name, const store::Object& object,
                              const job::ByteRange& range = {});
  // Then some of these; any thread, also beside others. On an error what was made stays.
  Status WritePart(uint64_t number, const std::string& name, const store::Object& object,
                   const job::ByteRange& part);
  // What is not there is removed already.
  Status Remove(uint64_t number);
  // The folder, with all that is in it.
  Status End();

 private:
  Result<std::unique_ptr<File>> MakeFile(const std::string& path);
  Status WriteNew(const std::string& path, const store::Object& object,
                  const job::ByteRange& range);

  Files& files_;
  const std::string folder_;
  std::unique_ptr<Folder> below_;
};

}  // namespace parallelrun::agent
