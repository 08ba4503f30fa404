// The commands of `parallelrun`: the words of each, and what it does. main.cc puts them together,
// and `help` and completion read them; a new command is a function here and a line in
// AllCommands().
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): that of CLI11
class App;
}

namespace parallelrun::cli {

struct Command {
  const CLI::App* words;     // of the App that it was added to
  std::function<int()> run;  // once they were parsed; returns the exit status
};

// The command line as it came in.
struct Typed {
  std::vector<std::string> words;   // all of them, the program's name first
  std::vector<std::string> script;  // those behind "--", which are the script's
};

// In the order of the help.
std::vector<Command> AllCommands(CLI::App& app, const Typed& typed);

// Each adds its words to `app`, which must outlive what it returns.
Command RunCommand(CLI::App& app, const Typed& typed);
Command InitCommand(CLI::App& app, const Typed& typed);
Command ValidateCommand(CLI::App& app);
Command ExplainCommand(CLI::App& app);
Command RenderCommand(CLI::App& app);
Command SubmitCommand(CLI::App& app);
Command ConvertCommand(CLI::App& app);
Command LedgerCommand(CLI::App& app);
Command TypesCommand(CLI::App& app);
Command VerifyCommand(CLI::App& app);
Command FailuresCommand(CLI::App& app);
Command DebugCommand(CLI::App& app);
Command PsCommand(CLI::App& app);
Command AttachCommand(CLI::App& app);
Command LogsCommand(CLI::App& app);
Command StopCommand(CLI::App& app);
Command PageCommand(CLI::App& app);
Command FetchCommand(CLI::App& app);
Command DoctorCommand(CLI::App& app);
Command CompareCommand(CLI::App& app);
Command RerunCommand(CLI::App& app, const Typed& typed);
Command CompletionCommand(CLI::App& app);
Command HelpCommand(CLI::App& app);

}  // namespace parallelrun::cli
