#include "cli/commands/commands.h"

namespace parallelrun::cli {

std::vector<Command> AllCommands(CLI::App& app, const Typed& typed) {
  return {
      RunCommand(app, typed),   InitCommand(app, typed), ValidateCommand(app), ExplainCommand(app),
      RenderCommand(app),       SubmitCommand(app),      ConvertCommand(app),  LedgerCommand(app),
      TypesCommand(app),        VerifyCommand(app),      FailuresCommand(app), CompareCommand(app),
      RerunCommand(app, typed), PsCommand(app),          AttachCommand(app),   LogsCommand(app),
      StopCommand(app),         PageCommand(app),        FetchCommand(app),    DebugCommand(app),
      DoctorCommand(app),       CompletionCommand(app),  HelpCommand(app),
  };
}

}  // namespace parallelrun::cli
