#include "cli/run/local_job.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <set>
#include <thread>

#include "api/document.h"
#include "api/fields/told.h"
#include "api/processes.h"
#include "api/text.h"
#include "azure/fill_in.h"
#include "azure/read_job.h"
#include "base/count_of.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/small_file.h"
#include "cli/run/choose_python.h"
#include "cli/run/local_place.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kVolumeIsAFolder[] =
    "a volume is a folder of this machine; what lies in S3 or Azure Blob Storage is named by "
    "spec.stores";

// Folders for the job's volumes: --volume first, then a hostPath's own path.
Result<coordinator::Volumes> MapVolumes(const api::Job& job, const RunRequest& request,
                                        const fs::path& job_folder) {
  coordinator::Volumes volumes;
  for (const std::string& flag : request.volumes) {
    const size_t equals = flag.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == flag.size()) {
      return Error{Code::kInvalid, "--volume " + flag + ": write --volume NAME=FOLDER"};
    }
    const std::string name = flag.substr(0, equals);
    const std::string folder = flag.substr(equals + 1);
    const Status here = MustBePath("--volume " + name, folder, kVolumeIsAFolder);
    if (!here.ok()) return here.error();
    volumes[name] = Absolute(fs::current_path(), folder);
  }
  std::string known;
  for (const api::Volume& volume : job.spec.volumes) {
    known += (known.empty() ? "" : ", ") + volume.name;
    if (volumes.contains(volume.name)) continue;
    // Nobody makes a claim here.
    if (volume.name == api::kStateVolume) {
      volumes[volume.name] = Absolute(job_folder, job.metadata.name + ".run");
    }
    if (volume.kind != "hostPath") continue;
    const std::string path = lenient::Text(volume.source, "path");
    const Status here =
        MustBePath(fmt::format("hostPath.path of volume {}", volume.name), path, kVolumeIsAFolder);
    if (!here.ok()) return here.error();
    volumes[volume.name] = Absolute(job_folder, path.empty() ? "." : path);
  }
  for (const auto& [name, folder] : volumes) {
    const bool there = std::any_of(job.spec.volumes.begin(), job.spec.volumes.end(),
                                   [&n = name](const api::Volume& v) { return v.name == n; });
    if (!there) {
      return Error{Code::kInvalid,
                   fmt::format("--volume {}: the job has no such volume; it has: {}", name,
                               known.empty() ? "none" : known)};
    }
  }
  return volumes;
}

// What the job file leaves to --volume.
void TakeSources(LocalJob& local) {
  for (api::Volume& volume : local.job.spec.volumes) {
    const auto folder = local.volumes.find(volume.name);
    if (!volume.kind.empty() || folder == local.volumes.end()) continue;
    volume.kind = "hostPath";
    volume.source = {{"path", folder->second}};
  }
}

// Code that only a cluster has may lie beside the job file, too. A volume that is a folder here is
// what the job means: with the script of another place the run said Succeeded.
void FindCode(const RunRequest& request, const fs::path& job_folder, LocalJob& local) {
  const api::CodeSource& code = local.job.spec.code;
  const bool named = code.kind == api::CodeKind::kFolder;
  local.code_folder = Absolute(job_folder, named ? code.path : ".");
  if (!request.code.empty()) {
    local.code_folder = Absolute(fs::current_path(), request.code);
    return;
  }
  if (code.kind != api::CodeKind::kVolume) return;
  Result<std::string> folder =
      coordinator::PathOf({code.name, code.path}, local.volumes, "spec.code");
  std::error_code ignored;
  if (folder.ok() && fs::is_directory(*folder, ignored)) {
    local.code_folder = std::move(*folder);
    return;
  }
  local.code_not_on = folder.ok() ? fmt::format("spec.code: {}, on the volume \"{}\", is not there",
                                                Printable(*folder, kShownLong), code.name)
                                  : folder.error().message;
}

// The volumes that something of the job lies on and that are no folder here, all at once.
Status CheckMapped(const api::JobSpec& spec, const coordinator::Volumes& volumes) {
  std::set<std::string> used = {spec.state.in.volume};
  if (spec.logs.store.empty()) used.insert(spec.logs.to.volume);
  if (spec.output.store.empty()) used.insert(spec.output.to.volume);
  for (const api::Input& input : spec.inputs) {
    if (input.store.empty()) used.insert(input.from.volume);
  }
  for (const api::SideInput& side : spec.side_inputs) {
    if (side.store.empty()) used.insert(side.from.volume);
  }
  std::vector<std::string> missing;
  for (const std::string& name : used) {
    if (!volumes.contains(name)) missing.push_back(name);
  }
  if (missing.empty()) return {};
  std::string add;
  for (const std::string& name : missing) add += " --volume " + name + "=FOLDER";
  return Error{
      Code::kInvalid,
      fmt::format("the job names {} \"{}\": say which folder of this machine stands for {}:{}",
                  missing.size() == 1 ? "the volume" : "the volumes", fmt::join(missing, "\", \""),
                  missing.size() == 1 ? "it" : "each", add)};
}

// State that may be lost with its pod has no counterpart here: it is kept beside the logs, or the
// output, which lies on a volume then.
void KeepState(api::Job& job) {
  if (!job.spec.state.ephemeral) return;
  job.spec.state.ephemeral = false;
  const bool in_store = !job.spec.logs.store.empty();
  job.spec.state.in = {in_store ? job.spec.output.to.volume : job.spec.logs.to.volume,
                       job.metadata.name + "/state"};
}

// What does nothing here, by the table of fields.
std::vector<std::string> IgnoredFields(const api::JobSpec& spec) {
  std::vector<std::string> fields = api::fields::FieldsOnlyForClusters(spec);
  // --nodes stands for it, which a note of its own says.
  std::erase(fields, "nodeCount");
  // Of these a local run looks at the GPUs alone: they say how many processes there are.
  if (!spec.resources.empty()) fields.emplace_back("resources");
  return fields;
}

void Describe(const RunRequest& request, LocalJob& local) {
  const api::JobSpec& spec = local.job.spec;
  const api::ProcessCount processes =
      api::LocalProcessCount(spec, std::thread::hardware_concurrency());
  local.processes = static_cast<uint32_t>(processes.count);
  local.processes_source = processes.source;
  local.nodes = request.nodes.value_or(1);
  if (static_cast<int32_t>(local.nodes) != spec.node_count) {
    local.notes.push_back(fmt::format(
        "running {} with {} on this machine; the job file asks for {}, which --nodes {} gives",
        CountOf(local.nodes, "node"), CountOf(local.processes, "process"),
        CountOf(static_cast<uint64_t>(spec.node_count), "node"), spec.node_count));
  }
  const std::vector<std::string> ignored = IgnoredFields(spec);
  if (!ignored.empty()) {
    local.notes.push_back(
        fmt::format("only a cluster uses {}; ignored here", fmt::join(ignored, ", ")));
  }
}

// What convert left open in the arguments, for which nothing here stands: the script would take the
// placeholder for a value, and a table by such a delimiter would be one column.
Status CheckFilledIn(const api::JobSpec& spec, const std::string& label) {
  const auto open = [&](const std::string& field, const std::string& text) {
    return Error{Code::kInvalid,
                 fmt::format("{}: {}: {} is still to be filled in: the comment beside it says with "
                             "what",
                             label, field, api::Quoted(text))};
  };
  for (size_t i = 0; i < spec.arguments.size(); ++i) {
    if (!azure::IsOpen(spec.arguments[i])) continue;
    return open(fmt::format("spec.arguments[{}]", i), spec.arguments[i]);
  }
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const std::string& delimiter = spec.inputs[i].tabular.delimiter;
    if (delimiter != azure::kFillIn) continue;
    return open(fmt::format("spec.inputs[{}].tabular.delimiter", i), delimiter);
  }
  return {};
}

// Nobody has seen the job file that was made of the words of the command.
void SpeakOfWhatWasTyped(const QuickJob& quick, api::Problem& problem) {
  problem.line = 0;
  if (!problem.flag.empty()) return;
  problem.flag = TypedAs(quick, problem.field);
  if (!problem.flag.empty()) problem.field.clear();
}

}  // namespace

std::string Absolute(const fs::path& base, const std::string& path) {
  std::string text = (base / path).lexically_normal();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

Result<std::string> CheckCode(const std::string& folder, const std::string& script) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    return Error{Code::kNotFound,
                 fmt::format("the code folder {} is not there: name it with --code", folder)};
  }
  // A dotted module, a/b.py or b.py: the file must be there before anything is started.
  std::string dotted = script;
  std::replace(dotted.begin(), dotted.end(), '.', '/');
  for (const std::string& candidate : {script, dotted + ".py", dotted + "/__init__.py"}) {
    if (fs::is_regular_file(fs::path(folder) / candidate, ignored)) return candidate;
  }
  std::string there;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".py")
      there += (there.empty() ? "" : ", ") + entry.path().filename().string();
  }
  return Error{
      Code::kNotFound,
      fmt::format(
          "spec.entryScript: {} is not in the code folder {}{}; name the folder with --code",
          script, folder, there.empty() ? "" : " (there: " + there + ")")};
}

Result<std::string> CheckCode(const LocalJob& job) {
  Result<std::string> found = CheckCode(job.code_folder, job.job.spec.entry_script);
  if (found.ok() || job.code_not_on.empty()) return found;
  return Error{found.error().code, fmt::format("{} ({})", found.error().message, job.code_not_on)};
}

bool HasCodeHere(const LocalJob& job) {
  switch (job.job.spec.code.kind) {
    case api::CodeKind::kJobFolder:
    case api::CodeKind::kFolder: return true;
    case api::CodeKind::kVolume: return job.code_not_on.empty();
    case api::CodeKind::kConfigMap:
    case api::CodeKind::kImage: return false;
  }
  return false;
}

Result<std::string> ReadJobFile(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return Error{Code::kNotFound, path +
                                      " is not there: give a job file (parallelrun init SCRIPT "
                                      "writes one) or an entry script that ends in .py"};
  }
  Result<std::string> text = ReadSmallFile(path, api::kMaxDocumentBytes);
  if (text.ok() || text.error().code == Code::kInvalid) return text;
  return Error{Code::kPermission, path + " cannot be read as a file"};
}

Result<LocalJob> ReadLocalJob(const RunRequest& request) {
  const bool quick = request.quick.has_value();
  const fs::path job_folder =
      quick ? fs::path(request.quick->code) : fs::absolute(request.job_file).parent_path();
  Result<std::string> text = quick ? Result<std::string>(QuickJobYaml(*request.quick, job_folder))
                                   : ReadJobFile(request.job_file);
  if (!text.ok()) return text.error();
  const std::string label = quick ? "" : request.job_file;

  api::ParsedJob parsed = azure::ReadJob(*text, request.overrides, api::Target::kLocal);
  std::string problems;
  LocalJob local;
  for (api::Problem& problem : parsed.problems) {
    if (quick) SpeakOfWhatWasTyped(*request.quick, problem);
    const std::string line = api::FormatProblem(problem, label);
    if (problem.severity == api::Problem::Severity::kWarning) local.notes.push_back(line);
    problems += (problems.empty() ? "" : "\n") + line;
  }
  if (!parsed.ok()) return Error{Code::kInvalid, problems};
  for (const std::string& note : parsed.notes) {
    local.notes.push_back(quick ? note : label + ": " + note);
  }
  local.job = std::move(parsed.job);
  if (const Status open = CheckFilledIn(local.job.spec, label); !quick && !open.ok()) {
    return open.error();
  }

  // A job that overwrites by itself may not lose the rows of all its items to a trial.
  api::IfExists& if_exists = local.job.spec.output.if_exists;
  if (request.select.some() && if_exists == api::IfExists::kOverwrite) {
    if_exists = api::IfExists::kFail;
  }
  Describe(request, local);
  KeepState(local.job);
  Result<coordinator::Volumes> volumes = MapVolumes(local.job, request, job_folder);
  if (!volumes.ok()) return volumes.error();
  local.volumes = std::move(*volumes);
  TakeSources(local);
  FindCode(request, job_folder, local);
  const PythonChoice python =
      ChoosePython(request.python, local.job.spec, [](const char* name) { return getenv(name); });
  local.job.spec.environment.python = python.program;
  local.python_why = python.why;
  return local;
}

Result<LocalJob> PrepareJob(const RunRequest& request) {
  Result<LocalJob> local = ReadLocalJob(request);
  if (!local.ok()) return local;
  if (const Status mapped = CheckMapped(local->job.spec, local->volumes); !mapped.ok()) {
    return mapped.error();
  }
  Result<coordinator::JobLayout> layout = coordinator::LayOut(local->job, local->volumes);
  if (!layout.ok()) return layout.error();
  local->layout = std::move(*layout);
  return local;
}

}  // namespace parallelrun::cli
