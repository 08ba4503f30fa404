// Small files, read whole: a bound before the bytes. Blocking; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace parallelrun {

class Files;

// All of a file that lies on this machine, or that whoever starts a program names; what the
// coordinator keeps is read through `Files`. kInvalid: it has more than `limit` bytes. `flags` are
// more of open(2): without O_NONBLOCK a pipe is waited for until it ends. Messages name the path.
Result<std::string> ReadSmallFile(const std::string& path, size_t limit, int flags = 0);

// Of an open descriptor, from where it stands, all that follows, with the same bound. `name` is for
// messages.
Result<std::string> ReadWhole(int fd, size_t limit, const std::string& name);

// Of an open descriptor, from where it stands: the first `most` bytes, or as many as there are.
// `name` is for messages.
Result<std::string> ReadBegin(int fd, size_t most, const std::string& name);

// The same of a file that the coordinator keeps.
Result<std::string> ReadBegin(const Files& files, const std::string& path, size_t most);

// Of an open file, wherever it stands: up to `most` bytes from `offset` on, or the last ones.
Result<std::string> ReadRange(int fd, uint64_t offset, size_t most, const std::string& name);
Result<std::string> ReadEnd(int fd, size_t most, const std::string& name);

// "" for what could not be read: where nothing rests on it.
std::string OrEmpty(Result<std::string> text);

}  // namespace parallelrun
