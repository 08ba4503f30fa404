#include <CLI/CLI.hpp>
#include <memory>

#include "cli/cluster/page_command.h"
#include "cli/commands/cluster_flags.h"
#include "cli/commands/commands.h"
#include "cli/doctor/doctor_command.h"
#include "cli/fetch/fetch_command.h"
#include "cli/follow/attach.h"
#include "cli/follow/follow.h"
#include "cli/logs/logs_command.h"
#include "cli/runs/rerun.h"
#include "cli/runs/runs_command.h"

namespace parallelrun::cli {

Command PsCommand(CLI::App& app) {
  CLI::App* ps = app.add_subcommand("ps", "List your runs on this machine that go on now");
  const auto json = std::make_shared<bool>(false);
  ps->add_flag("--json", *json, "As one JSON object");
  return {ps, [json] { return PrintRuns(*json); }};
}

Command AttachCommand(CLI::App& app) {
  CLI::App* attach = app.add_subcommand("attach", "Show the progress of a run that goes on");
  const auto target = std::make_shared<std::string>();
  const auto where = std::make_shared<KubectlWhere>();
  attach
      ->add_option("output", *target,
                   "The output folder of the run, or its state folder; with --namespace or "
                   "--context the name of a job of a cluster")
      ->required();
  attach->add_option("-n,--namespace", where->name_space,
                     "Namespace of a job of a cluster, as for kubectl");
  attach->add_option("--context", where->context, "Context of the kubeconfig, likewise");
  return {attach, [=] {
            const bool here = where->name_space.empty() && where->context.empty();
            return here ? AttachToRun(*target) : AttachToJob(*where, *target);
          }};
}

Command LogsCommand(CLI::App& app) {
  CLI::App* logs = app.add_subcommand("logs", "Print what the scripts of a run have written");
  const auto request = std::make_shared<LogsRequest>();
  logs->add_option("output", request->target,
                   "The output folder of the run, or its state folder; with --namespace or "
                   "--context the name of a job of a cluster")
      ->required();
  CLI::Option* follow =
      logs->add_flag("-f,--follow", request->follow, "Go on until the run has ended");
  CLI::Option* node =
      logs->add_option("--node", request->node, "Of this node alone, and what its agent logs");
  logs->add_option("--item", request->item, "What the attempts of the mini-batch of a file wrote")
      ->excludes(follow)
      ->excludes(node);
  AddClusterFlags(*logs, request->job);
  return {logs, [request] {
            if (request->job.IsOfCluster()) request->job.name = request->target;
            return PrintLogs(*request);
          }};
}

Command StopCommand(CLI::App& app) {
  CLI::App* stop = app.add_subcommand("stop", "Stop a run once its running mini-batches are done");
  const auto request = std::make_shared<StopRequest>();
  const auto where = std::make_shared<KubectlWhere>();
  stop->add_option("output", request->target,
                   "The output folder of the run, or its state folder; with --namespace or "
                   "--context the name of a job of a cluster")
      ->required();
  CLI::Option* now = stop->add_flag("--now", request->now, "Do not wait for what runs");
  CLI::Option* name_space = stop->add_option("-n,--namespace", where->name_space,
                                             "Namespace of a job of a cluster, as for kubectl");
  CLI::Option* context =
      stop->add_option("--context", where->context, "Context of the kubeconfig, likewise");
  name_space->excludes(now);
  context->excludes(now);
  stop->add_option("--wait", request->wait, "Seconds until it must have ended")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  return {stop, [=] {
            const bool here = name_space->empty() && context->empty();
            return here ? StopRun(*request)
                        : CancelJob(*where, request->target, static_cast<int>(request->wait));
          }};
}

Command PageCommand(CLI::App& app) {
  CLI::App* page = app.add_subcommand("page", "Show a job of a cluster live in a browser");
  const auto request = std::make_shared<PageRequest>();
  page->add_option("job", request->job, "Name of the job")->required();
  page->add_option("-n,--namespace", request->where.name_space, "Namespace, as for kubectl");
  page->add_option("--context", request->where.context,
                   "Context of the kubeconfig, as for kubectl");
  page->add_option("--port", request->port, "Port of this machine; any that is free if not given");
  return {page, [request] { return ShowPage(*request); }};
}

Command FetchCommand(CLI::App& app) {
  struct Words {
    FetchRequest request;
    std::string what;
  };
  CLI::App* fetch = app.add_subcommand("fetch", "Bring here what a job of a cluster has written");
  const auto words = std::make_shared<Words>();
  fetch->add_option("job", words->request.job, "Name of the job")->required();
  fetch->add_option("what", words->what, "output, logs, report or side-files")
      ->required()
      ->check(CLI::IsMember({"output", "logs", "report", "side-files"}));
  fetch->add_option("folder", words->request.folder, "Where it comes; must not be there, or empty")
      ->required();
  fetch->add_option("-n,--namespace", words->request.where.name_space, "Namespace, as for kubectl");
  fetch->add_option("--context", words->request.where.context,
                    "Context of the kubeconfig, as for kubectl");
  fetch->add_option("--wait", words->request.wait, "Seconds until a pod that reads must run")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  return {fetch, [words] {
            words->request.what = *FetchWhatOf(words->what);
            return Fetch(words->request);
          }};
}

Command RerunCommand(CLI::App& app, const Typed& typed) {
  CLI::App* rerun =
      app.add_subcommand("rerun", "Type the command of a run again, with other flags");
  const auto target = std::make_shared<std::string>();
  rerun->add_option("output", *target, "The output folder of the run, or its state folder")
      ->required();
  rerun->allow_extras();
  rerun->footer(
      "Flags are those of run, and replace those that were given. Everything after -- is passed to "
      "the script, in place of the words before.");
  return {rerun, [rerun, target, arguments = typed.script] {
            return Rerun(*target, rerun->remaining(), arguments);
          }};
}

Command DoctorCommand(CLI::App& app) {
  CLI::App* doctor =
      app.add_subcommand("doctor", "Check whether jobs can run on this machine, or on a cluster");
  const auto request = std::make_shared<DoctorRequest>();
  CLI::Option* folder =
      doctor->add_option("folder", request->folder, "Where a run would write; the current folder");
  CLI::Option* python =
      doctor->add_option("--python", request->python, "The Python that would run scripts");
  doctor
      ->add_option("-n,--namespace", request->where.name_space,
                   "A cluster, and what you may do in this namespace of it")
      ->excludes(folder)
      ->excludes(python);
  doctor->add_option("--context", request->where.context, "A cluster: context of the kubeconfig")
      ->excludes(folder)
      ->excludes(python);
  doctor->add_flag("--json", request->json, "As one JSON object");
  return {doctor, [request] { return Doctor(*request); }};
}

}  // namespace parallelrun::cli
