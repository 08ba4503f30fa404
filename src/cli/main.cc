// parallelrun: the command. See docs/cli.md.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include "agent/processes/spawn.h"
#include "api/fields/explain.h"
#include "api/text.h"
#include "base/log.h"
#include "base/version.h"
#include "cli/completion.h"
#include "cli/convert_command.h"
#include "cli/failures_command.h"
#include "cli/ledger_command.h"
#include "cli/render/submit.h"
#include "cli/run/code_root.h"
#include "cli/run/continue_command.h"
#include "cli/run/flag_words.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"
#include "cli/types_command.h"
#include "cli/validate_command.h"
#include "cli/verify_command.h"

namespace parallelrun {
namespace {

void Print(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

int ExplainField(const std::string& path) {
  const Result<std::string> told = fields::Explain(path);
  if (!told.ok()) Print(told.error().message);
  if (told.ok()) std::printf("%s", told->c_str());
  return told.ok() ? kExitOk : kExitUsage;
}

int Init(const QuickJob& job, const std::string& target) {
  const std::filesystem::path here = std::filesystem::current_path();
  if (std::filesystem::exists(target)) {
    Print(target + " exists: name another file with --file");
    return kExitUsage;
  }
  std::ofstream out(target, std::ios::binary);
  out << QuickJobYaml(job, std::filesystem::path(Absolute(here, target)).parent_path());
  out.close();
  if (!out) {
    Print(target + " cannot be written");
    return kExitUsage;
  }
  std::printf("%s\nrun it: parallelrun run %s\n", target.c_str(), target.c_str());
  return kExitOk;
}

std::string Meant(const std::string& word, const std::vector<std::string>& known) {
  const std::string closest = ClosestName(word, known);
  return closest.empty() ? "" : ": did you mean " + closest + "?";
}

void AddQuickOptions(CLI::App& command, QuickJob& quick, InputWords& input) {
  command.add_option("--input", input.words, "Folders, files or globs of the input");
  command
      .add_option("--format", input.format,
                  "files: run() gets paths; csv, tsv, jsonl or parquet: it gets rows")
      ->check([](const std::string& word) {
        const std::vector<std::string>& known = InputFormats();
        if (std::find(known.begin(), known.end(), word) != known.end()) return std::string();
        return word + " is none of " + OrList(known) + Meant(word, known);
      });
  command.add_option("--output", quick.output, "Folder for the output, logs and state");
  command.add_option("--pattern", input.pattern, "Which files of a folder, as **/*.png");
  command.add_option("--mini-batch-size", quick.mini_batch_size, "Files, or bytes as 1MB");
  command.add_option("--processes", quick.processes, "Worker processes")
      ->check(CLI::Range(1, 1024));
}

void AddRenderOptions(CLI::App& command, RenderRequest& render) {
  command.add_option("job", render.job_file, "Job file")->required();
  command.add_option("--code", render.code, "Folder of the code, in place of the job's");
  command.add_option("--set", render.overrides, "spec.path=value: change a field of the job")
      ->allow_extra_args(false);
}

std::vector<std::string> FlagsWithValue(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_min() == 0) continue;
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
}

// The commands with their flags, for those who complete or help.
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
    Print(name + " is not a command" + Meant(name, names) + "\nSee parallelrun --help");
    return kExitUsage;
  }
  std::printf("%s", app.help().c_str());
  return kExitOk;
}

int PrintCompletion(const std::string& shell) {
  const Result<std::string> script = CompletionScript(shell);
  if (!script.ok()) Print(script.error().message);
  if (script.ok()) std::printf("%s", script->c_str());
  return script.ok() ? kExitOk : kExitUsage;
}

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

// For CLI11, in place of its own words.
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
    if (word.empty()) return "Which command? " + OrList(names) + "\n" + help;
    return word + " is not a command" + Meant(word, names) + "\n" + help;
  }
  return (word.empty() ? std::string(error.what()) : word + ": one word too many") + "\n" + help;
}

int Main(int argc, char** argv) {
  CLI::App app(
      "Runs a Python entry script over a large data set, in parallel: exactly once, in order, "
      "resumable.",
      "parallelrun");
  app.require_subcommand(1);
  app.set_version_flag("-V,--version", VersionText("parallelrun"));
  app.failure_message(WhatIsWrong);

  // What stands behind "--" is the script's; a word too many before it is a mistake.
  const std::vector<std::string> words(argv, argv + argc);
  const auto own_end = std::find(words.begin(), words.end(), "--");
  QuickJob quick;
  if (own_end != words.end()) quick.arguments.assign(own_end + 1, words.end());
  InputWords input;
  input.command = words;
  quick.processes = std::max(1U, std::thread::hardware_concurrency());
  RunRequest request;
  std::string target;
  CLI::App* run = app.add_subcommand("run", "Run a job on this machine");
  run->add_option("job", target, "Job file, or an entry script (with --input and --output)")
      ->required();
  run->add_option("--volume", request.volumes,
                  "NAME=FOLDER: what a volume of the job is on this machine")
      ->allow_extra_args(false);
  run->add_option("--code", request.code, "Folder of the code, in place of the job's");
  run->add_option("--set", request.overrides, "spec.path=value: change a field of the job")
      ->allow_extra_args(false);
  run->add_option("--nodes", request.nodes, "Nodes to start here; 1 if not given")
      ->check(CLI::Range(1, 256));
  CLI::Option* resume = run->add_flag("--resume", request.resume, "Continue an unfinished run");
  CLI::Option* overwrite =
      run->add_flag("--overwrite", request.overwrite, "Start over; replaces the output")
          ->excludes(resume);
  run->add_flag("--retry-failed", request.retry_failed,
                "Run the failed mini-batches of a finished run again; replaces the output")
      ->excludes(resume)
      ->excludes(overwrite);
  run->add_flag("--allow-failures", request.allow_failures,
                "Exit with 0, and not with 3, when items were lost");
  run->add_option("--python", request.python, "The Python that runs the script");
  AddQuickOptions(*run, quick, input);
  run->footer("What stands behind -- is the script's arguments.");

  CLI::App* init = app.add_subcommand("init", "Write a job file for an entry script");
  std::string job_file = "job.yaml";
  init->add_option("script", quick.script, "The entry script")->required();
  init->add_option("--file", job_file, "The job file to write")->capture_default_str();
  AddQuickOptions(*init, quick, input);

  CLI::App* validate = app.add_subcommand("validate", "Check job files; prints every problem");
  std::vector<std::string> files;
  bool cluster = false;
  validate->add_option("files", files, "Job files")->required();
  validate->add_flag("--cluster", cluster, "Check for a cluster rather than for a local run");

  CLI::App* explain =
      app.add_subcommand("explain", "Say what a field of a job is, may be and does");
  std::string field = "spec";
  explain->add_option("field", field, "As spec.errorThreshold; all fields if not given");

  CLI::App* render = app.add_subcommand(
      "render", "Print a job for a cluster, with its code in a ConfigMap, as YAML");
  SubmitRequest to_cluster;
  AddRenderOptions(*render, to_cluster.render);

  CLI::App* submit = app.add_subcommand("submit", "Render a job and apply it with kubectl");
  AddRenderOptions(*submit, to_cluster.render);
  submit->add_option("-n,--namespace", to_cluster.name_space, "Namespace, as for kubectl");
  submit->add_option("--context", to_cluster.context, "Context of the kubeconfig, as for kubectl");
  submit->add_flag("--force-conflicts", to_cluster.force_conflicts,
                   "Take over fields that something else has set, as kubectl scale");

  CLI::App* convert = app.add_subcommand("convert", "Make a job file from a YAML file of Azure ML");
  std::string azure_file;
  std::string converted;
  std::string step;
  convert
      ->add_option("file", azure_file,
                   "parallel_run_config, parallel job or component, pipeline job, batch deployment")
      ->required();
  convert->add_option("-o,--output", converted,
                      "The job file to write; standard output if not given");
  convert->add_option("--step", step, "Which parallel step of a pipeline job");

  CLI::App* ledger =
      app.add_subcommand("ledger", "Verify the ledger of a job and print what it says");
  std::string state_folder;
  bool records = false;
  ledger->add_option("folder", state_folder, "State folder of the job")->required();
  ledger->add_flag("--records", records, "A line for each record");

  CLI::App* types = app.add_subcommand(
      "types", "Print how the columns of CSV or TSV are read, decided from every byte");
  TypesRequest tables;
  types->add_option("input", tables.target, "A file, a folder of files, or a job file")->required();
  types->add_option("--delimiter", tables.delimiter, "One character; a tab for .tsv, else a comma")
      ->check([](const std::string& text) {
        return text.size() == 1 ? "" : "the delimiter must be one character";
      });
  types
      ->add_option("--volume", tables.volumes,
                   "NAME=FOLDER: what a volume of the job is on this machine")
      ->allow_extra_args(false);
  types->add_option("--set", tables.overrides, "spec.path=value: change a field of the job")
      ->allow_extra_args(false);

  CLI::App* verify =
      app.add_subcommand("verify", "Compare a job's output with what the job published");
  std::string output;
  verify->add_option("output", output, "The output file, its folder, or the job's state folder")
      ->required();

  CLI::App* failures =
      app.add_subcommand("failures", "Print the items of a run that failed, grouped by error");
  FailuresRequest failed;
  failures->add_option("output", failed.target, "The output folder of a run, or its log folder")
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

  CLI::App* completion = app.add_subcommand(
      "completion", "Print what makes a shell complete the words of parallelrun");
  std::string shell;
  completion->add_option("shell", shell, "bash, zsh or fish")->required();

  CLI::App* help = app.add_subcommand("help", "Say how a command is used");
  std::string topic;
  help->add_option("command", topic, "All commands if not given");

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
  if (completion->parsed()) return PrintCompletion(shell);
  if (help->parsed()) return Help(app, topic);
  if (validate->parsed()) return ValidateFiles(files, cluster);
  if (explain->parsed()) return ExplainField(field);
  if (render->parsed()) return PrintRendered(to_cluster.render);
  if (submit->parsed()) return Submit(to_cluster);
  if (convert->parsed()) return ConvertFile(azure_file, converted, step);
  if (ledger->parsed()) return PrintLedger(state_folder, records);
  if (types->parsed()) return PrintTypes(tables);
  if (failures->parsed()) return PrintFailures(failed);
  if (verify->parsed()) return VerifyOutput(output);

  const bool script = target.size() > 3 && target.ends_with(".py");
  if (init->parsed() || script) {
    if (script) quick.script = target;
    if (input.words.empty() || quick.output.empty()) {
      Print("an entry script needs --input FOLDER and --output FOLDER");
      return kExitUsage;
    }
    if (!std::filesystem::is_regular_file(quick.script)) {
      std::error_code unknown;
      Print("the entry script " + quick.script + " is not there, looked for from " +
            std::filesystem::current_path(unknown).string());
      return kExitUsage;
    }
    Result<QuickInput> looked = LookAtInput(input);
    if (!looked.ok()) {
      Print(looked.error().message);
      return kExitUsage;
    }
    const char* home = getenv("HOME");
    Result<CodeRoot> root = FindCodeRoot(quick.script, request.code, home == nullptr ? "" : home);
    if (!root.ok()) {
      Print(root.error().message);
      return kExitUsage;
    }
    quick.code = std::move(root->folder);
    quick.script = std::move(root->script);
    quick.input = std::move(*looked);
    if (!quick.input.note.empty()) Print(quick.input.note);
    if (init->parsed()) return Init(quick, job_file);
    request.quick = quick;
  } else {
    if (!input.words.empty() || !quick.output.empty() || !quick.arguments.empty()) {
      Print(
          "--input, --output and arguments go with an entry script; a job file says them itself "
          "(change it with --set)");
      return kExitUsage;
    }
    request.job_file = target;
  }
  if (const std::string mend = SayConvert(request.job_file); !mend.empty()) {
    Print(mend);
    return kExitUsage;
  }
  SetUpLogging(false, LogLevel::kWarning);
  const Result<LocalJob> job = PrepareJob(request);
  if (!job.ok()) {
    Print(job.error().message);
    return kExitUsage;
  }
  const auto next = [&, with_value = FlagsWithValue(*run)](const char* flag) {
    return ContinueCommand(words, with_value, flag);
  };
  return RunLocally(*job, request, {next("--resume"), next("--retry-failed")});
}

}  // namespace
}  // namespace parallelrun

int main(int argc, char** argv) {
  try {
    return parallelrun::Main(argc, argv);
  } catch (const std::system_error& error) {
    const bool no_thread = error.code() == std::errc::resource_unavailable_try_again;
    parallelrun::Print(std::string("this command cannot go on: ") +
                       (no_thread ? parallelrun::kNoMoreProcesses : error.what()));
    return parallelrun::kExitUsage;
  }
}
