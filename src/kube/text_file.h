// Internal to src/kube: small text files, read whole.
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "base/error.h"

namespace parallelrun::kube {

// At most 4 MiB; kInvalid for more and for an empty file. Messages name the path.
Result<std::string> ReadTextFile(const std::string& path);

// Without white space at both ends.
std::string Trimmed(std::string_view text);

// A file whose text may change: asked again and again, it gives the last text that could be read.
// Thread-safe.
class ChangingFile {
 public:
  // `first` is its text now.
  ChangingFile(std::string path, std::string first)
      : path_(std::move(path)), text_(std::move(first)) {}
  std::string Read();

 private:
  const std::string path_;
  std::mutex mutex_;
  std::string text_;
};

}  // namespace parallelrun::kube
