#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/cluster_flags.h"
#include "cli/commands/commands.h"
#include "cli/compare/compare_command.h"
#include "cli/debug/debug_command.h"
#include "cli/failures_command.h"
#include "cli/ledger_command.h"
#include "cli/verify_command.h"

namespace parallelrun::cli {

Command LedgerCommand(CLI::App& app) {
  struct Words {
    std::string folder;
    bool records = false;
  };
  CLI::App* ledger =
      app.add_subcommand("ledger", "Verify the ledger of a job and print what it says");
  const auto words = std::make_shared<Words>();
  ledger
      ->add_option("folder", words->folder,
                   "State folder of the job, or the output file that --output named")
      ->required();
  ledger->add_flag("--records", words->records, "A line for each record");
  return {ledger, [words] { return PrintLedger(words->folder, words->records); }};
}

Command VerifyCommand(CLI::App& app) {
  CLI::App* verify =
      app.add_subcommand("verify", "Compare a job's output with what the job published");
  const auto output = std::make_shared<std::string>();
  verify->add_option("output", *output, "The output file, its folder, or the job's state folder")
      ->required();
  const auto json = std::make_shared<bool>(false);
  verify->add_flag("--json", *json, "As one JSON object");
  return {verify, [output, json] { return VerifyOutput(*output, *json); }};
}

Command FailuresCommand(CLI::App& app) {
  CLI::App* failures =
      app.add_subcommand("failures", "Print the items of a run that failed, grouped by error");
  const auto request = std::make_shared<FailuresRequest>();
  FailuresRequest& failed = *request;
  failures
      ->add_option("output", failed.target,
                   "The output folder or file of a run, or its log folder; with --namespace or "
                   "--context the name of a job of a cluster")
      ->required();
  CLI::Option* traceback =
      failures->add_flag("--traceback", failed.traceback, "With the first traceback of each error");
  CLI::Option* as_json = failures->add_flag("--json", failed.json, "As one JSON object");
  CLI::Option* paths =
      failures->add_flag("--paths", failed.paths, "Only the paths of the files, one a line")
          ->excludes(traceback)
          ->excludes(as_json);
  failures->add_flag("-0,--null", failed.null, "Paths end with a zero byte, as for xargs -0")
      ->needs(paths);
  AddClusterFlags(*failures, failed.job);
  return {failures, [request] {
            if (request->job.IsOfCluster()) request->job.name = request->target;
            return PrintFailures(*request);
          }};
}

Command CompareCommand(CLI::App& app) {
  CLI::App* compare =
      app.add_subcommand("compare", "Say how the rows of two runs differ, by mini-batch");
  const auto request = std::make_shared<CompareRequest>();
  compare->add_option("a", request->a, "The output folder of a run, or its state folder")
      ->required();
  compare->add_option("b", request->b, "That of another run")->required();
  compare->add_flag("--json", request->json, "As one JSON object");
  return {compare, [request] { return CompareOutputs(*request); }};
}

Command DebugCommand(CLI::App& app) {
  CLI::App* debug =
      app.add_subcommand("debug", "Run one mini-batch of a run again, in this terminal");
  const auto request = std::make_shared<DebugRequest>();
  debug->add_option("output", request->target, "The output folder of a run, or its state folder")
      ->required();
  CLI::Option* item = debug->add_option("--item", request->wanted.item, "The file to run");
  debug->add_option("--mini-batch", request->wanted.mini_batch, "The number of the mini-batch")
      ->excludes(item);
  CLI::Option* pdb =
      debug->add_flag("--pdb", request->pdb, "Start Python's debugger at an exception");
  debug
      ->add_option("--debugpy", request->debugpy,
                   "PORT: wait on it until an editor attaches, before anything runs")
      ->check(CLI::Range(1, 65535))
      ->excludes(pdb);
  debug->add_option("--python", request->python, "The Python that runs the script");
  debug->add_option("--code", request->code, "Folder of the code, in place of the run's");
  return {debug, [request] { return Debug(*request); }};
}

}  // namespace parallelrun::cli
