#include "base/ready_mark.h"

#include <fcntl.h>
#include <unistd.h>

#include <thread>

namespace parallelrun {

bool MakeReadyMark(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0644);
  if (fd < 0) return false;
  close(fd);
  return true;
}

// Not by inotify: the instances of a user are few, and the pods of a host may share them.
void AwaitReadyMark(const std::string& path) {
  while (access(path.c_str(), F_OK) != 0) std::this_thread::sleep_for(kLookForMark);
}

}  // namespace parallelrun
