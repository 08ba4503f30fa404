// A failure in one line, as people read it and as the ledger keeps it: "ValueError: no number
// (score.py:31)". Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace parallelrun::job {

struct FailureParts {
  std::string type;  // of the exception; empty: ParallelRun itself found it
  std::string message;
  std::string location;  // file:line in the user's code; empty: unknown
};

// At most `limit` bytes: the message is cut, never the rest, which is small.
std::string JoinFailure(const FailureParts& parts, size_t limit);
// The parts again. What stands in the message of `kind` Exception or InitFailed before the first
// ": " is the type: no name of a type holds one.
FailureParts SplitFailure(std::string_view kind, std::string_view text);

// Whether it is an error of the program, as far as can be told, and not of the data: a name or a
// module that is not there, a wrong kind of returned value. It is one attempt's word: the branch of
// the script that has it may be one that few items reach, and a module may be missing on one node.
bool OfProgram(std::string_view kind, std::string_view text);

// Whether a debugger has ended for want of a terminal, as breakpoint() makes it: it will have none
// at the next try.
bool OfDebugger(std::string_view kind, std::string_view text);

}  // namespace parallelrun::job
