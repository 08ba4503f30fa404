// Files that arrive from elsewhere, in a folder that appears whole or not at all: they are written
// beside its place, and it gets its name when all is there. Blocking; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "cli/fetch/wanted_files.h"
#include "output/output_file.h"

namespace parallelrun::cli {

class ArrivingFiles {
 public:
  // `target` is where the folder is to be: nothing, or an empty folder that is not the current one;
  // else kExists. Makes the folders above it.
  static Result<std::unique_ptr<ArrivingFiles>> Begin(Files& files, const std::string& target);
  // Removes what is not whole.
  ~ArrivingFiles();
  ArrivingFiles(const ArrivingFiles&) = delete;
  ArrivingFiles& operator=(const ArrivingFiles&) = delete;

  // Away with what came so far: it comes again. `must` is a file that has to come.
  Status Anew(std::optional<ExpectedFile> must);
  // The next file; `name` is one that agent::IsFileName takes. Nothing that lies there is replaced,
  // and no link is followed.
  Status Begin(const std::string& name);
  Status Add(std::string_view bytes);
  // All has come: checks it, and gives the folder its name. kNotFound: the file that had to come
  // did not; kCorrupt: it is another than the one that is told of.
  Status Finish();

  const std::string& target() const { return target_; }

 private:
  ArrivingFiles(Files& files, std::string target);
  Status MakeFoldersOf(const std::string& name);
  Status CheckMust();

  Files& files_;
  const std::string target_;
  const std::string partial_;
  std::unique_ptr<Folder> folder_;
  std::unique_ptr<File> file_;
  std::string name_;  // of file_
  uint64_t size_ = 0;
  std::optional<ExpectedFile> must_;
  bool must_came_ = false;
  uint64_t must_bytes_ = 0;
  output::Sha256 must_digest_;
};

}  // namespace parallelrun::cli
