#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>

#include "api/text.h"
#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/commands/mistakes.h"
#include "cli/convert_command.h"
#include "cli/run/code_root.h"
#include "cli/run/continue_command.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"
#include "cli/runs/detach.h"
#include "cli/runs/kept_code.h"
#include "cli/runs/run_record.h"

namespace parallelrun::cli {
namespace {

void Print(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

// Several words, each as it was typed: CLI11 would take "[a,b]" for a list of two, and its brackets
// away.
CLI::Option* AsTyped(CLI::Option* option) {
  constexpr int kMostWords = 1 << 20;
  return option->expected(1, kMostWords)->allow_extra_args(false);
}

// The words of an entry script without a job file.
struct QuickWords {
  QuickJob job;
  InputWords input;
  std::string output;
  std::string state;
};

void AddQuickOptions(CLI::App& command, QuickWords& words) {
  QuickJob& quick = words.job;
  InputWords& input = words.input;
  AsTyped(command.add_option("--input", input.words, "Folders, files or globs of the input"));
  command
      .add_option("--format", input.format,
                  "files: run() gets paths; csv, tsv, jsonl or parquet: it gets rows")
      ->check([](const std::string& word) {
        const std::vector<std::string>& known = InputFormats();
        if (std::find(known.begin(), known.end(), word) != known.end()) return std::string();
        return word + " is none of " + api::OrList(known) + Meant(word, known);
      });
  // Alone it is the careful one.
  command
      .add_flag("--allow-empty{Existing}", input.allow_empty,
                "An input that is there may have no item; --allow-empty=Missing: it need not be "
                "there")
      ->check(CLI::IsMember({"Existing", "Missing", "Never"}));
  command.add_option(
      "--output", words.output,
      "Folder for the output, logs and state; or a file: .csv, .jsonl, .parquet, .txt; "
      "or s3://BUCKET/PREFIX/, or s3://BUCKET/FILE.csv");
  command.add_option("--state", words.state,
                     "Folder for logs and state of an output in a bucket; NAME.run if not given");
  command.add_option("--pattern", input.pattern, "Which files of a folder, as **/*.png");
  command.add_option("--mini-batch-size", quick.mini_batch_size, "Files, or bytes as 1MB");
  command.add_option("--processes", quick.processes, "Worker processes")
      ->check(CLI::Range(1, 1024));
}

std::vector<std::string> FlagsWithValue(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_min() == 0) continue;
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  return flags;
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

// The job that the words of an entry script mean; nothing, and the reason on stderr, where they
// mean none. `code` is that of --code.
std::optional<QuickJob> QuickJobOf(const QuickWords& words, const std::string& code) {
  QuickJob quick = words.job;
  const auto wrong = [](const std::string& why) {
    Print(why);
    return std::nullopt;
  };
  if (words.input.words.empty() || words.output.empty()) {
    return wrong("an entry script needs --input FOLDER and --output FOLDER");
  }
  if (!std::filesystem::is_regular_file(quick.script)) {
    std::error_code unknown;
    return wrong("the entry script " + quick.script + " is not there, looked for from " +
                 std::filesystem::current_path(unknown).string());
  }
  Result<QuickOutput> written = LookAtOutput(words.output, words.state);
  if (!written.ok()) return wrong(written.error().message);
  quick.output = std::move(*written);
  Result<QuickInput> looked = LookAtInput(words.input);
  if (!looked.ok()) return wrong(looked.error().message);
  const char* home = getenv("HOME");
  Result<CodeRoot> root = FindCodeRoot(quick.script, code, home == nullptr ? "" : home);
  if (!root.ok()) return wrong(root.error().message);
  quick.code = std::move(root->folder);
  quick.script = std::move(root->script);
  quick.input = std::move(*looked);
  quick.allow_empty = words.input.allow_empty;
  if (!quick.input.note.empty()) Print(quick.input.note);
  return quick;
}

// The folder was not typed as that of the output.
void TellRunFolder(const QuickOutput& output) {
  if (output.url.empty() || output.folder.empty()) return;
  Print("logs and state lie in " + Absolute(std::filesystem::current_path(), output.folder));
}

struct RunWords {
  std::string target;  // job file or entry script
  QuickWords quick;
  RunRequest request;
  std::string events;
};

// `with_value`: the flags that have a value.
int Run(const RunWords& words, const std::vector<std::string>& with_value) {
  RunRequest request = words.request;
  request.events = !words.events.empty();
  const std::string& target = words.target;
  if (target.size() > 3 && target.ends_with(".py")) {
    QuickWords quick = words.quick;
    quick.job.script = target;
    request.quick = QuickJobOf(quick, request.code);
    if (!request.quick) return kExitUsage;
    TellRunFolder(request.quick->output);
  } else {
    const QuickWords& quick = words.quick;
    if (!quick.input.words.empty() || !quick.output.empty() || !quick.job.arguments.empty() ||
        !quick.input.allow_empty.empty()) {
      Print(
          "--input, --allow-empty, --output and arguments go with an entry script; a job file says "
          "them itself (change it with --set)");
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
  if (request.detach) {
    const coordinator::JobLayout& layout = job->layout;
    // By which other commands find the run: of an output in a store the folder of its state.
    const bool stored = !layout.output_store.empty();
    return Detach(request.command, stored ? layout.state_folder : OutputOf(request, layout));
  }
  if (request.keep_code || request.ends_with_stdin) {
    const std::string kept = request.keep_code ? KeptCodeFolder(job->layout.state_folder) : "";
    // A job file is no part of the code.
    const std::string script = request.quick ? target : "";
    request.command = WordsForPeople(request.command, script, request.code, kept);
  }
  const auto next = [&](const char* flag) {
    return ContinueCommand(request.command, with_value, flag);
  };
  const NextCommands commands{next("--resume"), next("--retry-failed")};
  return RunLocally(*job, request, commands);
}

// Gives that of --dry-run, which starts nothing.
CLI::Option* AddTrialOptions(CLI::App& run, RunRequest& request) {
  SelectWords& select = request.select;
  CLI::Option* limit =
      run.add_option("--limit", select.limit, "Take the first N items: files, or rows of tables")
          ->check(CLI::PositiveNumber);
  CLI::Option* sample = run.add_option("--sample", select.sample,
                                       "Take N files from everywhere, the same ones each time")
                            ->check(CLI::PositiveNumber)
                            ->excludes(limit);
  AsTyped(run.add_option("--only", select.only, "Take these files of the input only"))
      ->excludes(limit)
      ->excludes(sample);
  return run.add_flag("--dry-run", request.dry_run,
                      "Check everything and say what would be run; start and write nothing");
}

QuickWords QuickWordsOf(const Typed& typed) {
  QuickWords words;
  words.job.arguments = typed.script;
  words.job.processes = std::max(1U, std::thread::hardware_concurrency());
  words.input.command = typed.words;
  return words;
}

}  // namespace

Command RunCommand(CLI::App& app, const Typed& typed) {
  CLI::App* run = app.add_subcommand("run", "Run a job on this machine");
  const auto words = std::make_shared<RunWords>();
  words->quick = QuickWordsOf(typed);
  RunRequest& request = words->request;
  request.command = typed.words;
  run->add_option("job", words->target, "Job file, or an entry script (with --input and --output)")
      ->required();
  run->add_option("--volume", request.volumes,
                  "NAME=FOLDER: what a volume of the job is on this machine")
      ->allow_extra_args(false);
  CLI::Option* code =
      run->add_option("--code", request.code, "Folder of the code, in place of the job's");
  run->add_flag("--keep-code", request.keep_code,
                "Keep a copy of the code beside the ledger, for a folder that goes away")
      ->needs(code);
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
  run->add_flag("--page", request.page, "Print an address that shows the run live in a browser");
  run->add_flag("--allow-failures", request.allow_failures,
                "Exit with 0, and not with 3, when items were lost");
  run->add_option("--python", request.python, "The Python that runs the script");
  AddQuickOptions(*run, words->quick);
  CLI::Option* detach =
      run->add_flag("--detach", request.detach, "Go on in the background; see attach, stop and ps");
  CLI::Option* events = run->add_option("--events", words->events,
                                        "jsonl: what happens, for programs, on standard output")
                            ->check(CLI::IsMember({"jsonl"}))
                            ->excludes(detach);
  run->add_flag("--ends-with-stdin", request.ends_with_stdin,
                "Stop, as by SIGTERM, when standard input ends: whoever started it has ended")
      ->excludes(detach);
  run->add_option("--progress", request.progress,
                  "bar, plain (a line each 10 s) or none; as it fits if not given")
      ->check(CLI::IsMember({"bar", "plain", "none"}));
  run->add_flag("-q,--quiet", request.quiet, "Say only what went wrong");
  AddTrialOptions(*run, request)->excludes(detach)->excludes(events);
  run->footer("What follows -- is passed to the script.");
  return {run, [run, words] { return Run(*words, FlagsWithValue(*run)); }};
}

Command InitCommand(CLI::App& app, const Typed& typed) {
  CLI::App* init = app.add_subcommand("init", "Write a job file for an entry script");
  const auto words = std::make_shared<QuickWords>(QuickWordsOf(typed));
  const auto job_file = std::make_shared<std::string>("job.yaml");
  init->add_option("script", words->job.script, "The entry script")->required();
  init->add_option("--file", *job_file, "The job file to write")->capture_default_str();
  AddQuickOptions(*init, *words);
  return {init, [words, job_file] {
            std::optional<QuickJob> job = QuickJobOf(*words, "");
            if (!job) return kExitUsage;
            // A job file that names no folder of this machine is one for a cluster too.
            if (!job->output.url.empty() && words->state.empty()) job->output.folder.clear();
            TellRunFolder(job->output);
            return Init(*job, *job_file);
          }};
}

}  // namespace parallelrun::cli
