#include "cli/completion.h"

#include <algorithm>
#include <map>
#include <optional>

#include "api/fields/walk.h"
#include "api/text.h"
#include "cli/run/quick_input.h"
#include "reasons/words.h"

namespace parallelrun::cli {
namespace {

using Words = std::vector<std::string>;

// The fields of the spec, as `explain` takes them, or as --set does: the first item of a list.
Words FieldPaths(const std::string& item, const std::string& end) {
  Words paths;
  api::fields::EachField(
      [&](std::string path, const api::fields::Field&, const api::fields::Field&) {
        for (size_t at = 0; (at = path.find("[]", at)) != std::string::npos;)
          path.replace(at, 2, item);
        paths.push_back(path + end);
      });
  return paths;
}

// Fields, and the reasons of docs/messages.md.
Words WhatIsExplained() {
  Words words = FieldPaths("", "");
  words.insert(words.end(), std::begin(reasons::kWords), std::end(reasons::kWords));
  return words;
}

Words Shells() { return {"bash", "fish", "zsh"}; }

// What a value may be. Empty: nothing can be said of it; nullopt: a file or a folder.
std::optional<Words> ValuesOf(const std::string& flag) {
  if (flag == "--format") return InputFormats();
  if (flag == "--set") return FieldPaths("[0]", "=");
  for (const char* free : {"--mini-batch-size", "--pattern", "--processes", "--nodes", "--step",
                           "--delimiter", "--namespace", "-n", "--context"}) {
    if (flag == free) return Words{};
  }
  return std::nullopt;
}

std::optional<Words> ArgumentsOf(const std::string& command, const Words& commands) {
  if (command == "explain") return WhatIsExplained();
  if (command == "completion") return Shells();
  if (command == "help") return commands;
  return std::nullopt;
}

Completion Beginning(const std::string& current, const Words& words) {
  Completion completion;
  std::copy_if(words.begin(), words.end(), std::back_inserter(completion.words),
               [&](const std::string& word) { return word.starts_with(current); });
  return completion;
}

Completion OneOf(const std::string& current, const std::optional<Words>& words) {
  return words ? Beginning(current, *words) : Completion{.words = {}, .files = true};
}

const CommandFlag* FlagOf(const CommandWords& command, const std::string& name) {
  const auto found = std::find_if(command.flags.begin(), command.flags.end(),
                                  [&](const CommandFlag& flag) { return flag.name == name; });
  return found == command.flags.end() ? nullptr : &*found;
}

constexpr char kBash[] = R"(# For bash: source <(parallelrun completion bash)
_parallelrun() {
  local current=${COMP_WORDS[COMP_CWORD]} line files=
  # bash takes "=" for a word of its own.
  [ "$current" != "=" ] || current=
  local words=("${COMP_WORDS[@]:1:COMP_CWORD-1}" "$current")
  COMPREPLY=()
  while IFS= read -r line; do
    if [ "$line" = :files ]; then
      files=1
    else
      COMPREPLY+=("$line")
    fi
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2> /dev/null)
  if [ -n "$files" ]; then
    compopt -o default 2> /dev/null
  elif [ "${#COMPREPLY[@]}" -gt 0 ] && [[ ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2> /dev/null
  fi
}
complete -F _parallelrun parallelrun
)";

constexpr char kZsh[] = R"(#compdef parallelrun
# For zsh: source <(parallelrun completion zsh), or as _parallelrun in a folder of $fpath
_parallelrun() {
  local line
  local -a plain open
  while IFS= read -r line; do
    case $line in
      :files) _files ;;
      *=) open+=("$line") ;;
      *) plain+=("$line") ;;
    esac
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2> /dev/null)
  (( $#plain )) && compadd -a plain
  (( $#open )) && compadd -S '' -a open
  return 0
}
if [ "$funcstack[1]" = _parallelrun ]; then
  _parallelrun "$@"
else
  compdef _parallelrun parallelrun
fi
)";

constexpr char kFish[] = R"(# For fish: parallelrun completion fish | source
function __parallelrun_complete
    set -l words (commandline -opc)
    for line in ($words[1] __complete $words[2..-1] (commandline -ct) 2> /dev/null)
        if test "$line" = :files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c parallelrun -f -a '(__parallelrun_complete)'
)";

}  // namespace

Completion Complete(const std::vector<CommandWords>& commands, const Words& words) {
  // As bash has "--set=spec.x": three words.
  Words typed;
  std::copy_if(words.begin(), words.end(), std::back_inserter(typed),
               [](const std::string& word) { return word != "="; });
  if (typed.empty()) return {};
  const std::string current = typed.back();
  typed.pop_back();
  if (std::find(typed.begin(), typed.end(), "--") != typed.end()) {
    return {.words = {}, .files = true};  // the script's
  }
  Words names;
  for (const CommandWords& command : commands) names.push_back(command.name);
  if (typed.empty()) return Beginning(current, names);
  const auto command =
      std::find_if(commands.begin(), commands.end(),
                   [&](const CommandWords& known) { return known.name == typed.front(); });
  if (command == commands.end()) return {};
  const CommandFlag* const before = FlagOf(*command, typed.back());
  if (before != nullptr && before->takes_value) return OneOf(current, ValuesOf(before->name));
  if (!current.starts_with('-')) return OneOf(current, ArgumentsOf(command->name, names));

  const size_t equals = current.find('=');
  if (equals != std::string::npos) {
    const std::string flag = current.substr(0, equals);
    const CommandFlag* const known = FlagOf(*command, flag);
    if (known == nullptr || !known->takes_value) return {};
    Completion values = OneOf(current.substr(equals + 1), ValuesOf(flag));
    for (std::string& value : values.words) value.insert(0, flag + "=");
    return values;
  }
  Words flags;
  for (const CommandFlag& flag : command->flags) flags.push_back(flag.name);
  return Beginning(current, flags);
}

std::string CompletionText(const Completion& completion) {
  std::string text = completion.files ? ":files\n" : "";
  for (const std::string& word : completion.words) text += word + "\n";
  return text;
}

Result<std::string> CompletionScript(const std::string& shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return Error{Code::kInvalid, shell + " is none of " + api::OrList(Shells())};
}

}  // namespace parallelrun::cli
