#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/version.h"
#include "cli/commands/commands.h"
#include "cli/commands/man_page.h"
#include "cli/commands/mistakes.h"
#include "cli/completion.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {
namespace {

// `parallelrun help` and `parallelrun help run` say what `--help` does.
int Help(CLI::App& app, const std::string& name) {
  app.clear();  // or CLI11 tells of the command that was typed, `help`
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands(nullptr)) {
    if (one->get_name() == name) {
      std::printf("%s", one->help("parallelrun").c_str());
      return kExitOk;
    }
    names.push_back(one->get_name());
  }
  if (!name.empty()) {
    std::fprintf(stderr, "%s is not a command%s\nSee parallelrun --help\n", name.c_str(),
                 Meant(name, names).c_str());
    return kExitUsage;
  }
  std::printf("%s", app.help().c_str());
  return kExitOk;
}

int PrintCompletion(const std::string& shell) {
  const Result<std::string> script = CompletionScript(shell);
  if (!script.ok()) std::fprintf(stderr, "%s\n", script.error().message.c_str());
  if (script.ok()) std::printf("%s", script->c_str());
  return script.ok() ? kExitOk : kExitUsage;
}

}  // namespace

Command CompletionCommand(CLI::App& app) {
  CLI::App* completion = app.add_subcommand(
      "completion", "Print what makes a shell complete the words of parallelrun");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("shell", *shell, "bash, zsh or fish")->required();
  return {completion, [shell] { return PrintCompletion(*shell); }};
}

Command HelpCommand(CLI::App& app) {
  CLI::App* help = app.add_subcommand("help", "Say how a command is used");
  const auto topic = std::make_shared<std::string>();
  const auto man = std::make_shared<bool>(false);
  CLI::Option* command = help->add_option("command", *topic, "All commands if not given");
  help->add_flag("--man", *man, "Print the manual page")->excludes(command);
  return {help, [&app, topic, man] {
            if (!*man) return Help(app, *topic);
            std::printf("%s", ManPage(app, kVersion).c_str());
            return kExitOk;
          }};
}

}  // namespace parallelrun::cli
