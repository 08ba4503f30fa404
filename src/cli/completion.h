// What may stand next on the command line of `parallelrun`. The shells ask for it by
// `parallelrun __complete WORD…`, so that there is one answer for all of them. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace parallelrun::cli {

struct CommandFlag {
  std::string name;  // "--volume"
  bool takes_value = false;
};

struct CommandWords {
  std::string name;
  std::vector<CommandFlag> flags;
};

struct Completion {
  std::vector<std::string> words;  // what `current` may become
  bool files = false;              // or the name of a file
};

// `words` are those behind `parallelrun`, the last one is being typed and may be empty. A word that
// ends in "=" wants its value without a blank.
Completion Complete(const std::vector<CommandWords>& commands,
                    const std::vector<std::string>& words);

// A line for each word; the line ":files" where the name of a file may stand.
std::string CompletionText(const Completion& completion);

// The script that a shell reads; kInvalid names the shells that have one.
Result<std::string> CompletionScript(const std::string& shell);

}  // namespace parallelrun::cli
