#include "cli/convert_command.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "api/document.h"
#include "api/job_name.h"
#include "azure/convert/convert.h"
#include "azure/read_job.h"
#include "cli/run/continue_command.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"

namespace parallelrun::cli {

namespace fs = std::filesystem;

namespace {

// A file that an Azure ML file names: any path that somebody wrote, so a regular file of the size
// that a document may have.
Result<std::string> ReadNeighbour(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return Error{Code::kNotFound, path.string() + " is not there"};
  }
  const uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes > api::kMaxDocumentBytes) {
    return Error{Code::kInvalid, path.string() + " is larger than 1 MiB"};
  }
  return ReadJobFile(path.string());
}

void Tell(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

azure::ConvertOptions OptionsFor(const std::string& file, const std::string& target) {
  azure::ConvertOptions options{
      .file = fs::path(file).filename().string(), .step = {}, .code_prefix = {}};
  options.read = [folder = fs::path(file).parent_path()](const std::string& path) {
    return ReadNeighbour(folder / path);
  };
  if (!target.empty()) {
    const fs::path from = fs::absolute(file).parent_path();
    options.code_prefix = from.lexically_relative(fs::absolute(target).parent_path()).string();
  }
  return options;
}

// The command for this machine: with the folders that the Azure ML file names, and FOLDER for the
// others.
std::string RunLine(const std::string& file, const std::string& target,
                    const std::vector<azure::VolumeFolder>& volumes) {
  std::string line = "parallelrun run " + ForShell(target);
  const fs::path base = fs::path(file).parent_path();
  for (const azure::VolumeFolder& one : volumes) {
    std::string folder = one.folder.empty() ? "FOLDER" : (base / one.folder).lexically_normal();
    while (folder.size() > 1 && folder.ends_with('/')) folder.pop_back();
    line += " --volume " + ForShell(one.volume + "=" + folder);
  }
  return line + " --volume results=FOLDER";
}

// The job, to `target` or standard output, and what is to be said of it.
int WriteConversion(const std::string& file, const std::string& target,
                    const azure::Conversion& conversion) {
  for (const api::Problem& problem : conversion.problems) Tell(api::FormatProblem(problem, file));
  if (conversion.yaml.empty()) return kExitUsage;
  const std::string label = target.empty() ? "the job" : target;
  const api::ParsedJob parsed = azure::ReadJob(conversion.yaml, {}, api::Target::kLocal);
  for (const api::Problem& problem : parsed.problems) Tell(api::FormatProblem(problem, label));
  if (target.empty()) {
    std::fputs(conversion.yaml.c_str(), stdout);
    return parsed.ok() ? kExitOk : kExitUsage;
  }
  std::ofstream out(target, std::ios::binary);
  out << conversion.yaml;
  out.close();
  if (!out) {
    Tell(target + " cannot be written");
    return kExitUsage;
  }
  Tell(target + " written: replace what is marked FILL IN, then parallelrun validate " + target);
  Tell("to run it here: " + RunLine(file, target, conversion.volumes));
  return parsed.ok() ? kExitOk : kExitUsage;
}

}  // namespace

std::string SayConvert(const std::string& file) {
  const Result<std::string> text = ReadNeighbour(file);
  return text.ok() ? azure::SayConvert(*text, file) : "";
}

int ConvertFile(const std::string& file, const std::string& target, const std::string& step) {
  std::error_code error;
  if (!target.empty() && fs::exists(target, error)) {
    Tell(target + " exists: name another file with -o");
    return kExitUsage;
  }
  const Result<std::string> text = ReadJobFile(file);
  if (!text.ok()) {
    Tell(text.error().message);
    return kExitUsage;
  }
  azure::ConvertOptions options = OptionsFor(file, target);
  options.step = step;
  return WriteConversion(file, target, azure::ConvertAzure(*text, options));
}

int ConvertEachStep(const std::string& file, const std::string& folder) {
  if (folder.empty()) {
    Tell("--all-steps writes a file for each step: name their folder with -o");
    return kExitUsage;
  }
  const Result<std::string> text = ReadJobFile(file);
  if (!text.ok()) {
    Tell(text.error().message);
    return kExitUsage;
  }
  const auto steps =
      azure::ConvertAllSteps(*text, OptionsFor(file, (fs::path(folder) / "x").string()));
  std::vector<std::string> targets;
  std::error_code error;
  for (const azure::StepConversion& one : steps) {
    // Two steps may have names that are one as the name of a job.
    const std::string name =
        api::JobNameOf(one.step.empty() ? fs::path(file).stem().string() : one.step);
    std::string target = (fs::path(folder) / (name + ".yaml")).string();
    for (int i = 2; std::find(targets.begin(), targets.end(), target) != targets.end(); ++i) {
      target = (fs::path(folder) / fmt::format("{}-{}.yaml", name, i)).string();
    }
    if (fs::exists(target, error)) {
      Tell(target + " exists: name another folder with -o");
      return kExitUsage;
    }
    targets.push_back(std::move(target));
  }
  fs::create_directories(folder, error);
  if (error) {
    Tell(folder + " cannot be made: " + error.message());
    return kExitUsage;
  }
  int exit = kExitOk;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (WriteConversion(file, targets[i], steps[i].conversion) != kExitOk) exit = kExitUsage;
  }
  return exit;
}

}  // namespace parallelrun::cli
