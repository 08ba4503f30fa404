#include "cli/commands/mistakes.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "api/text.h"

namespace parallelrun::cli {
namespace {

// Of the subcommands that were named, which is one at most: options stand behind their command.
std::vector<std::string> FlagsOf(const CLI::App* app) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const CLI::App* command : app->get_subcommands()) {
    for (const std::string& flag : FlagsOf(command)) flags.push_back(flag);
  }
  return flags;
}

// What other tools call our flags and commands, which are not like them.
const std::map<std::string, std::string>& ByOtherNames() {
  static const std::map<std::string, std::string> names = {{"-i", "--input"},
                                                           {"-o", "--output"},
                                                           {"-j", "--processes"},
                                                           {"--jobs", "--processes"},
                                                           {"--workers", "--processes"},
                                                           {"--num-workers", "--processes"},
                                                           {"--parallel", "--processes"},
                                                           {"--threads", "--processes"},
                                                           {"-n", "--processes"},
                                                           {"--batch-size", "--mini-batch-size"},
                                                           {"-f", "--overwrite"},
                                                           {"--force", "--overwrite"},
                                                           {"--continue", "--resume"},
                                                           {"--retry", "--retry-failed"},
                                                           {"--glob", "--pattern"},
                                                           {"--include", "--pattern"},
                                                           {"--silent", "--quiet"},
                                                           {"--background", "--detach"},
                                                           {"--dryrun", "--dry-run"},
                                                           {"-v", "--version"},
                                                           {"status", "ps"},
                                                           {"list", "ps"},
                                                           {"ls", "ps"},
                                                           {"jobs", "ps"},
                                                           {"kill", "stop"},
                                                           {"cancel", "stop"},
                                                           {"delete", "stop"},
                                                           {"log", "logs"},
                                                           {"watch", "attach"},
                                                           {"resume", "run ... --resume"},
                                                           {"continue", "run ... --resume"},
                                                           {"retry", "run ... --retry-failed"},
                                                           {"start", "run"},
                                                           {"exec", "run"},
                                                           {"check", "validate"},
                                                           {"lint", "validate"},
                                                           {"apply", "submit"},
                                                           {"create", "init"},
                                                           {"new", "init"},
                                                           {"download", "fetch"},
                                                           {"errors", "failures"},
                                                           {"diff", "compare"}};
  return names;
}

// The same of one of those names, if what it stands for begins with one of the known ones.
std::string MeantByOthers(const std::string& word, const std::vector<std::string>& known) {
  const auto other = ByOtherNames().find(word);
  if (other == ByOtherNames().end()) return Meant(word, known);
  const std::string begin = other->second.substr(0, other->second.find(' '));
  if (std::find(known.begin(), known.end(), begin) == known.end()) return Meant(word, known);
  return ": did you mean " + other->second + "?";
}

}  // namespace

std::string Meant(const std::string& word, const std::vector<std::string>& known) {
  const std::string closest = api::ClosestName(word, known);
  return closest.empty() ? "" : ": did you mean " + closest + "?";
}

std::string WhatIsWrong(const CLI::App* app, const CLI::Error& error) {
  const CLI::App* command = app->get_subcommands().empty() ? app : app->get_subcommands().front();
  const std::string help =
      "See parallelrun " + (command == app ? "" : command->get_name() + " ") + "--help\n";
  const std::vector<std::string> unknown = app->remaining(true);
  const std::string word = unknown.empty() ? "" : unknown.front();
  if (word.starts_with("-")) {
    const std::string flag = word.substr(0, word.find('='));
    return flag + " is not a flag of " + command->get_name() + MeantByOthers(flag, FlagsOf(app)) +
           "\n" + help;
  }
  if (command == app) {
    std::vector<std::string> names;
    for (const CLI::App* one : app->get_subcommands(nullptr)) names.push_back(one->get_name());
    if (word.empty()) return "Which command? " + api::OrList(names) + "\n" + help;
    return word + " is not a command" + MeantByOthers(word, names) + "\n" + help;
  }
  const bool no_job = word.empty() && command->get_name() == "run" &&
                      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (no_job) {
    return "Say what to run: parallelrun run JOB.yaml, or parallelrun run SCRIPT.py --input IN "
           "--output OUT\n" +
           help;
  }
  return (word.empty() ? std::string(error.what()) : word + ": one word too many") + "\n" + help;
}

}  // namespace parallelrun::cli
