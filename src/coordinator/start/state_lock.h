// One command at a time works on a state folder: an advisory lock on its file `lock`, which holds
// the number of the process that has it.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/files.h"

namespace parallelrun::coordinator {

// Makes the folder if need be. The lock is held until the handle goes, whatever ends this process.
// kUnavailable: another one has it, which the message names.
Result<std::unique_ptr<File>> LockState(Files& files, const std::string& folder);

// Whether somebody holds the lock now.
bool StateIsLocked(const Files& files, const std::string& folder);

// Whether what LockState locked still has its name: another command could begin anew there, and so
// would a coordinator of this one.
Status CheckLocked(const Files& files, const File& lock, const std::string& folder);

}  // namespace parallelrun::coordinator
