#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "api/text.h"
#include "cli/commands/commands.h"
#include "cli/convert_command.h"
#include "cli/explain_command.h"
#include "cli/render/submit.h"
#include "cli/run/local_run.h"
#include "cli/types_command.h"
#include "cli/validate_command.h"

namespace parallelrun::cli {
namespace {

void AddRenderOptions(CLI::App& command, RenderRequest& render) {
  command.add_option("job", render.job_file, "Job file; - for standard input")->required();
  command.add_option("--code", render.code, "Folder of the code, in place of the job's");
  command.add_option("--set", render.overrides, "spec.path=value: change a field of the job")
      ->allow_extra_args(false);
}

}  // namespace

Command ValidateCommand(CLI::App& app) {
  struct Words {
    std::vector<std::string> files;
    bool cluster = false;
  };
  CLI::App* validate = app.add_subcommand("validate", "Check job files; prints every problem");
  const auto words = std::make_shared<Words>();
  validate->add_option("files", words->files, "Job files")->required();
  validate->add_flag("--cluster", words->cluster,
                     "Check for a cluster rather than for a local run");
  return {validate, [words] { return ValidateFiles(words->files, words->cluster); }};
}

Command ExplainCommand(CLI::App& app) {
  CLI::App* explain =
      app.add_subcommand("explain", "Say what a field of a job, a reason or an exit status means");
  const auto word = std::make_shared<std::string>("spec");
  explain->add_option("word", *word,
                      "As spec.errorThreshold, NodeBackOff or 3; all fields if not given");
  return {explain, [word] { return PrintExplained(*word); }};
}

Command RenderCommand(CLI::App& app) {
  CLI::App* render = app.add_subcommand(
      "render", "Print a job for a cluster, with its code in a ConfigMap, as YAML");
  const auto request = std::make_shared<RenderRequest>();
  AddRenderOptions(*render, *request);
  return {render, [request] { return PrintRendered(*request); }};
}

Command SubmitCommand(CLI::App& app) {
  CLI::App* submit = app.add_subcommand("submit", "Render a job and apply it with kubectl");
  const auto request = std::make_shared<SubmitRequest>();
  AddRenderOptions(*submit, request->render);
  submit->add_option("-n,--namespace", request->name_space, "Namespace, as for kubectl");
  submit->add_option("--context", request->context, "Context of the kubeconfig, as for kubectl");
  submit->add_flag("--force-conflicts", request->force_conflicts,
                   "Take over fields that something else has set, as kubectl scale");
  submit->add_flag("--replace", request->replace,
                   "Delete an ended job of its name first; what it has written stays");
  submit
      ->add_option_function<std::string>(
          "--events", [request](const std::string&) { request->events = true; },
          "jsonl: tell programs on stdout what becomes of it, to its end")
      ->check(CLI::IsMember({"jsonl"}));
  return {submit, [request] { return Submit(*request); }};
}

Command ConvertCommand(CLI::App& app) {
  struct Words {
    std::string file;
    std::string converted;
    std::string step;
    bool all_steps = false;
  };
  CLI::App* convert = app.add_subcommand("convert", "Make a job file from a YAML file of Azure ML");
  const auto words = std::make_shared<Words>();
  convert
      ->add_option("file", words->file,
                   "parallel_run_config, parallel job or component, pipeline job, batch deployment")
      ->required();
  convert->add_option("-o,--output", words->converted,
                      "The job file to write; standard output if not given. With --all-steps: "
                      "the folder of the files, one for each step");
  CLI::Option* const step =
      convert->add_option("--step", words->step, "Which parallel step of a pipeline job");
  convert
      ->add_flag("--all-steps", words->all_steps,
                 "Every parallel step of a pipeline job, each into a file of its name")
      ->excludes(step);
  return {convert, [words] {
            return words->all_steps ? ConvertEachStep(words->file, words->converted)
                                    : ConvertFile(words->file, words->converted, words->step);
          }};
}

Command TypesCommand(CLI::App& app) {
  CLI::App* types = app.add_subcommand(
      "types", "Print how the columns of CSV or TSV are read, decided from every byte");
  const auto request = std::make_shared<TypesRequest>();
  types->add_option("input", request->target, "A file, a folder of files, or a job file")
      ->required();
  types
      ->add_option("--delimiter", request->delimiter,
                   "One character, or several (8 bytes at most); a tab for .tsv, else a comma")
      ->check([](const std::string& text) {
        return api::IsDelimiter(text)
                   ? ""
                   : "the delimiter must be one character or several, 8 bytes at most, and no "
                     "quotation mark or line break";
      });
  types
      ->add_option("--volume", request->volumes,
                   "NAME=FOLDER: what a volume of the job is on this machine")
      ->allow_extra_args(false);
  types->add_option("--set", request->overrides, "spec.path=value: change a field of the job")
      ->allow_extra_args(false);
  types->add_flag("--json", request->json, "As one JSON object");
  return {types, [request] { return PrintTypes(*request); }};
}

}  // namespace parallelrun::cli
