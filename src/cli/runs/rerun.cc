#include "cli/runs/rerun.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/escape.h"
#include "cli/run/continue_command.h"
#include "cli/run/local_run.h"
#include "cli/run/programs.h"
#include "cli/runs/run_record.h"

namespace parallelrun::cli {
namespace {

std::string NameOfFlag(const std::string& word) { return word.substr(0, word.find('=')); }

bool IsFlag(const std::string& word) { return word.starts_with("--") && word.size() > 2; }

bool MayRepeat(const std::string& flag) { return flag == "--set" || flag == "--volume"; }

}  // namespace

std::vector<std::string> RerunWords(const std::vector<std::string>& command,
                                    const std::vector<std::string>& flags,
                                    const std::vector<std::string>& arguments) {
  static const std::set<std::string> kStarts = {"--resume", "--retry-failed", "--overwrite"};
  static const std::set<std::string> kWithoutValue = {
      "--resume", "--retry-failed", "--overwrite", "--allow-failures", "--detach", "--dry-run"};
  // One choice among the items takes the place of another.
  static const std::set<std::string> kChoices = {"--limit", "--sample", "--only"};
  std::set<std::string> given;
  for (const std::string& word : flags) {
    const std::string flag = NameOfFlag(word);
    if (!IsFlag(word) || MayRepeat(flag)) continue;
    given.insert(flag);
    if (kChoices.contains(flag)) given.insert(kChoices.begin(), kChoices.end());
  }
  const auto end = std::find(command.begin(), command.end(), "--");
  std::vector<std::string> words;
  bool drop = false;  // the values of a flag that is left out
  for (auto word = command.begin(); word != end; ++word) {
    if (IsFlag(*word)) {
      const std::string flag = NameOfFlag(*word);
      drop = kStarts.contains(flag) || given.contains(flag);
    }
    if (!drop) words.push_back(*word);
    // These have no value: what follows is the next word of the command.
    if (kWithoutValue.contains(*word)) drop = false;
  }
  words.insert(words.end(), flags.begin(), flags.end());
  if (arguments.empty()) {
    words.insert(words.end(), end, command.end());
  } else {
    words.emplace_back("--");
    words.insert(words.end(), arguments.begin(), arguments.end());
  }
  return words;
}

int Rerun(const std::string& target, const std::vector<std::string>& flags,
          const std::vector<std::string>& arguments) {
  const auto refuse = [](const std::string& why) {
    fmt::print(stderr, "{}\n", why);
    return kExitUsage;
  };
  const Result<std::string> state = FindStateFolder(target);
  if (!state.ok()) return refuse(state.error().message);
  const Result<RunRecord> record = ReadRunRecord(*state);
  if (!record.ok()) return refuse(record.error().message);
  if (record->command.size() < 2) return refuse("the command of that run was not noted");
  const Result<Programs> programs = FindPrograms();
  if (!programs.ok()) return refuse(programs.error().message);
  if (chdir(record->folder.c_str()) != 0) {
    return refuse(fmt::format("{}, where the run was typed, cannot be entered: {}",
                              Printable(record->folder, 1000), std::strerror(errno)));
  }
  const std::vector<std::string> words = RerunWords(record->command, flags, arguments);
  std::string line;
  for (const std::string& word : words) line += " " + ForShell(Printable(word, 1000));
  fmt::print(stderr, "in {}:{}\n", Printable(record->folder, 1000), line);
  std::vector<std::string> command =
      programs->Command(std::filesystem::path(programs->coordinator).parent_path() / "parallelrun",
                        {words.begin() + 1, words.end()});
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execv(pointers[0], pointers.data());
  return refuse(fmt::format("{} cannot be started: {}", command[0], std::strerror(errno)));
}

}  // namespace parallelrun::cli
