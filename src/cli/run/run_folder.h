// The folder below TMPDIR that one `parallelrun run` and its processes work in. It goes with the
// command; what a command that was killed left there, the next one removes. Blocking I/O.
#pragma once

#include <string>

#include "base/error.h"

namespace parallelrun::cli {

class RunFolder {
 public:
  RunFolder() = default;
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  // Makes the folder, empty but for its lock, and removes those of commands that have ended.
  // Errors name the folder and say what to do. Call it once.
  Status Make();
  // Absolute; empty before Make.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int lock_ = -1;  // held while this command lives, whatever ends it
};

}  // namespace parallelrun::cli
