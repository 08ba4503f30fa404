#include "cli/commands/mistakes.h"

#include <CLI/CLI.hpp>

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
    return flag + " is not a flag of " + command->get_name() + Meant(flag, FlagsOf(app)) + "\n" +
           help;
  }
  if (command == app) {
    std::vector<std::string> names;
    for (const CLI::App* one : app->get_subcommands(nullptr)) names.push_back(one->get_name());
    if (word.empty()) return "Which command? " + api::OrList(names) + "\n" + help;
    return word + " is not a command" + Meant(word, names) + "\n" + help;
  }
  return (word.empty() ? std::string(error.what()) : word + ": one word too many") + "\n" + help;
}

}  // namespace parallelrun::cli
