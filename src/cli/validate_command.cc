#include "cli/validate_command.h"

#include <cstdio>
#include <utility>

#include "api/document.h"
#include "azure/convert/convert.h"
#include "azure/fill_in.h"
#include "azure/read_job.h"
#include "cli/run/code_listing.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"
#include "cli/run/preflight.h"

namespace parallelrun::cli {
namespace {

void Say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

// What convert could not know. A local run needs no claim and no image; nothing stands for the
// rest.
api::Problems StillToFillIn(const std::string& text, bool cluster) {
  api::Problems problems = azure::FindFillIns(api::ReadDocument(text).job);
  for (api::Problem& problem : problems) {
    const bool stood_for =
        problem.field.starts_with("spec.volumes[") || problem.field == "spec.environment.image";
    if (!cluster && stood_for) problem.severity = api::Problem::Severity::kWarning;
  }
  return problems;
}

// What of the code a run will leave out, and nobody would expect.
void SayWhatIsLeftOut(const LocalJob& job, const std::string& file) {
  if (!HasCodeHere(job)) return;
  CodeFolder code{job.code_folder, job.job.spec.entry_script, {}};
  for (const auto& [name, folder] : job.volumes) code.leave_out.push_back(folder);
  if (const std::string note = OwnFolders(code); !note.empty()) Say(file + ": " + note);
}

// A cluster has other folders and another Python.
std::vector<std::string> WhatIsMissing(const std::string& file) {
  RunRequest request;
  request.job_file = file;
  Result<LocalJob> job = ReadLocalJob(request);
  if (!job.ok()) return {job.error().message};
  SayWhatIsLeftOut(*job, file);
  return CheckJobFile(std::move(*job));
}

}  // namespace

int ValidateFiles(const std::vector<std::string>& files, bool cluster) {
  int exit = kExitOk;
  for (const std::string& file : files) {
    const Result<std::string> text = ReadJobFile(file);
    if (!text.ok()) {
      Say(text.error().message);
      exit = kExitUsage;
      continue;
    }
    if (const std::string mend = azure::SayConvert(*text, file); !mend.empty()) {
      Say(mend);
      exit = kExitUsage;
      continue;
    }
    api::ParsedJob parsed =
        azure::ReadJob(*text, {}, cluster ? api::Target::kCluster : api::Target::kLocal);
    for (api::Problem& problem : StillToFillIn(*text, cluster)) {
      parsed.problems.push_back(std::move(problem));
    }
    for (const api::Problem& problem : parsed.problems) Say(api::FormatProblem(problem, file));
    for (const std::string& note : parsed.notes) Say(file + ": " + note);
    std::vector<std::string> missing;
    if (parsed.ok() && !cluster) missing = WhatIsMissing(file);
    for (const std::string& problem : missing) Say(file + ": " + problem);
    if (!parsed.ok() || !missing.empty()) exit = kExitUsage;
    if (parsed.ok() && missing.empty()) std::printf("%s: ok\n", file.c_str());
  }
  return exit;
}

}  // namespace parallelrun::cli
