// What the real Files is made of (MakeSystemFiles of files.h); for the sources beside this only.
#pragma once

#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/files.h"

namespace parallelrun {

// Calls again what a signal has interrupted.
template <typename Call>
auto Retry(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// As statx(2); nothing, with errno, when it fails.
std::optional<FileFacts> FactsOf(int folder, const char* name, int flags);

// fsync of an open folder; false with errno.
bool SyncedFolder(int folder);

std::unique_ptr<File> MakeSystemFile(Fd fd, std::string path);
std::unique_ptr<Folder> MakeSystemFolder(Fd fd, std::string path, Links links);

}  // namespace parallelrun
