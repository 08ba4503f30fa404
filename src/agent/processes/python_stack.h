// What faulthandler of Python writes of a process that hangs, for people. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

namespace parallelrun::agent {

// "run score.py:30, helper score.py:12 (score.py:12)": the calls of the thread that got the signal,
// which is the main thread, the innermost last; then the innermost in the user's code. Paths below
// `code` are relative; calls of the worker, whose package is in `own`, are left out. "": there is
// no call.
std::string PythonStack(std::string_view dump, const std::string& code, const std::string& own);

// All of it, with the paths below `code` relative, as tracebacks have them: that is a copy, and
// gone when somebody reads this.
std::string WholeStacks(std::string_view dump, const std::string& code);

}  // namespace parallelrun::agent
