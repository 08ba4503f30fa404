// LogFolder is the only way into a job's log tree. Others may write there too, so what lies in it
// is hostile: paths are relative to the folder, and no link below it is ever followed. Nothing
// throws. A copy is another handle of the same folder. Thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun::coordinator {

class LogFolder {
 public:
  // Made if missing.
  static Result<LogFolder> Open(Files& files, const std::string& path);

  const std::string& path() const { return path_; }

  // kPermission where a path leads through a link. What makes a file makes its folders too.
  Result<std::unique_ptr<File>> OpenRead(const std::string& name) const;
  Result<std::unique_ptr<File>> OpenOrCreate(const std::string& name) const;
  Result<std::unique_ptr<File>> CreateExclusive(const std::string& name) const;
  // At its end, without a sync.
  Status Append(const std::string& name, std::string_view text) const;
  // Whole or not at all: written beside, synced, renamed.
  Status Publish(const std::string& name, std::string_view text) const;
  // Both in one folder; what it makes is durable.
  Status Rename(const std::string& from, const std::string& to) const;
  // All on its way, too; durable.
  Status MakeFolders(const std::string& name) const;
  // What has these names in the folder `from` goes into the folder `to`, which is there; durable.
  // Stops at the first that does not.
  Status Move(const std::string& from, const std::vector<std::string>& names,
              const std::string& to) const;
  Status Remove(const std::string& name) const;
  // A file, or a folder with all in it. What cannot be removed stays.
  void RemoveAll(const std::string& name) const;
  // What lies in it, sorted; nothing where that cannot be read.
  std::vector<std::string> List(const std::string& name) const;
  // All that may be files below a folder ("": the tree), sorted in each folder; links are among
  // them. `leave_out`: names at the top.
  std::vector<std::string> FilesBelow(const std::string& name,
                                      const std::set<std::string>& leave_out = {}) const;
  // A link of our own, where the volume knows links and nothing has the name.
  void Link(const std::string& target, const std::string& name) const;

 private:
  LogFolder(std::shared_ptr<Folder> root, std::string path)
      : root_(std::move(root)), path_(std::move(path)) {}

  std::shared_ptr<Folder> root_;
  std::string path_;
};

// Text of so many bytes is gathered before it is written: a volume far away takes long for each
// write.
inline constexpr size_t kLogBlock = size_t{1} << 16;

// A file of the log tree that takes its name once it is whole. What was not published is removed.
class NewLogFile {
 public:
  NewLogFile(LogFolder folder, std::string name);
  ~NewLogFile();
  NewLogFile(const NewLogFile&) = delete;
  NewLogFile& operator=(const NewLogFile&) = delete;

  // What fails is told by Publish.
  void Add(std::string_view text);
  Status Publish();

 private:
  void Write();

  const LogFolder folder_;
  const std::string name_;
  const std::string beside_;
  std::unique_ptr<File> file_;
  uint64_t size_ = 0;
  std::string waiting_;
  Status status_;
  bool published_ = false;
};

}  // namespace parallelrun::coordinator
