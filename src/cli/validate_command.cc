#include "cli/validate_command.h"

#include <cstdio>

#include "api/parse.h"
#include "cli/convert/convert.h"
#include "cli/fill_in.h"
#include "cli/run/local_job.h"
#include "cli/run/local_run.h"

namespace parallelrun {
namespace {

void Say(const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); }

// What convert could not know: a local run needs no claim and no image, a cluster all of it.
Problems StillToFillIn(const std::string& text, bool cluster) {
  Problems problems = FindFillIns(ReadDocument(text).job);
  for (Problem& problem : problems) {
    if (!cluster) problem.severity = Problem::Severity::kWarning;
  }
  return problems;
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
    if (const std::string azure = SayConvert(*text, file); !azure.empty()) {
      Say(azure);
      exit = kExitUsage;
      continue;
    }
    ParsedJob parsed = ReadJob(*text, {}, cluster ? Target::kCluster : Target::kLocal);
    for (Problem& problem : StillToFillIn(*text, cluster)) {
      parsed.problems.push_back(std::move(problem));
    }
    for (const Problem& problem : parsed.problems) Say(FormatProblem(problem, file));
    for (const std::string& note : parsed.notes) Say(file + ": " + note);
    if (!parsed.ok()) exit = kExitUsage;
    if (parsed.ok()) std::printf("%s: ok\n", file.c_str());
  }
  return exit;
}

}  // namespace parallelrun
