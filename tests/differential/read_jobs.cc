// Reads jobs, one JSON text a line, as for a cluster; for jobs.py. The answer to each is one line:
// the canonical job, or "refused: " and its problems.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "api/to_json.h"
#include "azure/read_job.h"

using namespace parallelrun;  // NOLINT(google-build-using-namespace)

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const api::ParsedJob job = azure::ReadJob(line, {}, api::Target::kCluster);
    if (job.ok()) {
      std::cout << api::CanonicalText(api::ToJson(job.job)) << "\n";
      continue;
    }
    std::string problems;
    for (const api::Problem& problem : job.problems)
      problems += api::FormatProblem(problem, "") + "; ";
    std::cout << "refused: " << problems << "\n";
  }
  return std::cout.flush() ? 0 : 1;
}
