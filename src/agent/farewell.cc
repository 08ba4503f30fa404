#include "agent/farewell.h"

#include <memory>

#include "base/escape.h"

namespace parallelrun::agent {

void LeaveFarewell(Files& files, const std::string& path, const std::string& words) {
  constexpr size_t kMost = 4000;  // Printable may add a few bytes
  const Result<std::unique_ptr<File>> file = files.Open(path);
  if (!file.ok()) return;
  static_cast<void>((*file)->Cut(0));
  static_cast<void>((*file)->WriteAt(0, Printable(words, kMost) + "\n"));
}

}  // namespace parallelrun::agent
