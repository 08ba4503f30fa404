#include "cli/run/local_job.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "api/processes.h"
#include "azure/read_job.h"
#include "cli/run/choose_python.h"

namespace parallelrun {
namespace {

namespace fs = std::filesystem;

// Folders for the job's volumes: --volume first, then a hostPath's own path.
Result<Volumes> MapVolumes(const Job& job, const RunRequest& request, const fs::path& job_folder) {
  Volumes volumes;
  for (const std::string& flag : request.volumes) {
    const size_t equals = flag.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == flag.size()) {
      return Error{Code::kInvalid, "--volume " + flag + ": write --volume NAME=FOLDER"};
    }
    volumes[flag.substr(0, equals)] = Absolute(fs::current_path(), flag.substr(equals + 1));
  }
  std::string known;
  for (const Volume& volume : job.spec.volumes) {
    known += (known.empty() ? "" : ", ") + volume.name;
    if (volumes.contains(volume.name) || volume.kind != "hostPath") continue;
    volumes[volume.name] = Absolute(job_folder, volume.source.value("path", "."));
  }
  for (const auto& [name, folder] : volumes) {
    const bool there = std::any_of(job.spec.volumes.begin(), job.spec.volumes.end(),
                                   [&n = name](const Volume& v) { return v.name == n; });
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
  for (Volume& volume : local.job.spec.volumes) {
    const auto folder = local.volumes.find(volume.name);
    if (!volume.kind.empty() || folder == local.volumes.end()) continue;
    volume.kind = "hostPath";
    volume.source = {{"path", folder->second}};
  }
}

std::string CodeFolder(const Job& job, const RunRequest& request, const fs::path& job_folder) {
  if (!request.code.empty()) return Absolute(fs::current_path(), request.code);
  const bool named = job.spec.code.kind == CodeKind::kFolder;
  return Absolute(job_folder, named ? job.spec.code.path : ".");
}

// The volumes that something of the job lies on and that are no folder here, all at once.
Status CheckMapped(const JobSpec& spec, const Volumes& volumes) {
  std::set<std::string> used = {spec.output.to.volume, spec.logs.volume, spec.state.in.volume};
  for (const Input& input : spec.inputs) {
    if (input.store.empty()) used.insert(input.from.volume);
  }
  for (const SideInput& side : spec.side_inputs) used.insert(side.from.volume);
  std::vector<std::string> missing;
  for (const std::string& name : used) {
    if (!volumes.contains(name)) missing.push_back(name);
  }
  if (missing.empty()) return {};
  std::string add;
  for (const std::string& name : missing) add += " --volume " + name + "=FOLDER";
  return Error{
      Code::kInvalid,
      fmt::format("volume{} \"{}\" {} no folder here: add{}", missing.size() == 1 ? "" : "s",
                  fmt::join(missing, "\", \""), missing.size() == 1 ? "is" : "are", add)};
}

// State that may be lost with its pod has no counterpart here: it is kept beside the logs.
void KeepState(Job& job) {
  if (!job.spec.state.ephemeral) return;
  job.spec.state.ephemeral = false;
  job.spec.state.in = {job.spec.output.to.volume, job.metadata.name + "/state"};
}

std::vector<std::string> IgnoredFields(const JobSpec& spec) {
  std::vector<std::string> fields;
  const auto add = [&](bool set, const char* field) {
    if (set) fields.emplace_back(field);
  };
  add(!spec.environment.image.empty(), "environment.image");
  add(!spec.environment.env_from.empty(), "environment.envFrom");
  add(!spec.resources.empty(), "resources");
  add(!spec.pod_template.empty(), "podTemplate");
  add(!spec.coordinator.pod_template.empty(), "coordinator.podTemplate");
  add(spec.state.ephemeral, "state.ephemeral");
  add(!spec.environment.image_pull_secrets.empty(), "environment.imagePullSecrets");
  add(!spec.environment.image_pull_policy.empty(), "environment.imagePullPolicy");
  add(spec.cancel, "cancel");
  add(!spec.managed_by.empty(), "managedBy");
  add(spec.delete_after_finished, "deleteAfterFinished");
  add(spec.shared_memory.has_value(), "sharedMemory");
  add(spec.suspend, "suspend");
  add(spec.ttl_after_finished.has_value(), "ttlSecondsAfterFinished");
  add(spec.active_deadline.has_value(), "activeDeadlineSeconds");
  add(spec.startup_deadline.has_value(), "startupDeadlineSeconds");
  return fields;
}

void Describe(const RunRequest& request, LocalJob& local) {
  const JobSpec& spec = local.job.spec;
  const ProcessCount processes = LocalProcessCount(spec, std::thread::hardware_concurrency());
  local.processes = static_cast<uint32_t>(processes.count);
  local.processes_source = processes.source;
  local.nodes = request.nodes.value_or(1);
  if (static_cast<int32_t>(local.nodes) != spec.node_count) {
    local.notes.push_back(fmt::format("{} x {} here (the job asks {} x {}); --nodes N changes it",
                                      local.nodes, local.processes, spec.node_count,
                                      local.processes));
  }
  const std::vector<std::string> ignored = IgnoredFields(spec);
  if (!ignored.empty()) {
    local.notes.push_back(
        fmt::format("only a cluster uses {}; ignored here", fmt::join(ignored, ", ")));
  }
}

// Nobody has seen the job file that was made of the words of the command.
void SpeakOfWhatWasTyped(const QuickJob& quick, Problem& problem) {
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

Result<std::string> ReadJobFile(const std::string& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    return Error{Code::kNotFound, path +
                                      " is not there: give a job file (parallelrun init SCRIPT "
                                      "writes one) or an entry script that ends in .py"};
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || fs::is_directory(path, ignored)) {
    return Error{Code::kPermission, path + " cannot be read as a file"};
  }
  return text.str();
}

Result<LocalJob> ReadLocalJob(const RunRequest& request) {
  const bool quick = request.quick.has_value();
  const fs::path job_folder =
      quick ? fs::path(request.quick->code) : fs::absolute(request.job_file).parent_path();
  Result<std::string> text = quick ? Result<std::string>(QuickJobYaml(*request.quick, job_folder))
                                   : ReadJobFile(request.job_file);
  if (!text.ok()) return text.error();
  const std::string label = quick ? "" : request.job_file;

  ParsedJob parsed = azure::ReadJob(*text, request.overrides, Target::kLocal);
  std::string problems;
  LocalJob local;
  for (Problem& problem : parsed.problems) {
    if (quick) SpeakOfWhatWasTyped(*request.quick, problem);
    const std::string line = FormatProblem(problem, label);
    if (problem.severity == Problem::Severity::kWarning) local.notes.push_back(line);
    problems += (problems.empty() ? "" : "\n") + line;
  }
  if (!parsed.ok()) return Error{Code::kInvalid, problems};
  for (const std::string& note : parsed.notes) {
    local.notes.push_back(quick ? note : label + ": " + note);
  }
  local.job = std::move(parsed.job);

  Describe(request, local);
  KeepState(local.job);
  Result<Volumes> volumes = MapVolumes(local.job, request, job_folder);
  if (!volumes.ok()) return volumes.error();
  local.volumes = std::move(*volumes);
  TakeSources(local);
  local.code_folder = CodeFolder(local.job, request, job_folder);
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
  Result<JobLayout> layout = LayOut(local->job, local->volumes);
  if (!layout.ok()) return layout.error();
  local->layout = std::move(*layout);
  return local;
}

}  // namespace parallelrun
