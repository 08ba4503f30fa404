// parallelrun: the command. See docs/cli.md.
#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <system_error>

#include "agent/processes/spawn.h"
#include "base/version.h"
#include "cli/commands/commands.h"
#include "cli/commands/mistakes.h"
#include "cli/completion.h"
#include "cli/run/flag_words.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {
namespace {

// The commands with their flags, for who completes.
std::vector<CommandWords> CommandsOf(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* one : app.get_subcommands(nullptr)) {
    CommandWords command{.name = one->get_name(), .flags = {}};
    for (const CLI::Option* option : one->get_options()) {
      const bool value = option->get_items_expected_min() > 0;
      for (const std::string& name : option->get_lnames()) {
        command.flags.push_back({"--" + name, value});
      }
      for (const std::string& name : option->get_snames()) {
        command.flags.push_back({"-" + name, value});
      }
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Runs a Python entry script over a large data set, in parallel: exactly once, in order, "
      "resumable.",
      "parallelrun");
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", VersionText("parallelrun"));
  app.failure_message(WhatIsWrong);

  Typed typed{.words = {argv, argv + argc}, .script = {}};
  const std::vector<std::string>& words = typed.words;
  // What stands behind "--" is the script's; a word too many before it is a mistake.
  const auto own_end = std::find(words.begin(), words.end(), "--");
  if (own_end != words.end()) typed.script.assign(own_end + 1, words.end());
  const std::vector<Command> commands = AllCommands(app, typed);

  // What the shells ask, in the words that were typed so far: nothing to parse.
  if (words.size() > 1 && words[1] == "__complete") {
    std::printf(
        "%s", CompletionText(Complete(CommandsOf(app), {words.begin() + 2, words.end()})).c_str());
    return kExitOk;
  }
  std::vector<std::string> own = EachWithItsFlag({words.begin() + 1, own_end});
  std::reverse(own.begin(), own.end());  // as CLI11 takes them
  try {
    app.parse(std::move(own));
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? kExitOk : kExitUsage;
  }
  for (const Command& command : commands) {
    if (command.words->parsed()) return command.run();
  }
  return kExitUsage;
}

}  // namespace
}  // namespace parallelrun::cli

int main(int argc, char** argv) {
  // What is opened must not come where something is written to.
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
  }
  try {
    return parallelrun::cli::Main(argc, argv);
  } catch (const std::system_error& error) {
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    std::fprintf(stderr, "this command cannot go on: %s\n",
                 no_thread ? parallelrun::agent::kNoMoreProcesses : error.what());
    return parallelrun::cli::kExitUsage;
  }
}
