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
    const ParsedJob job = azure::ReadJob(line, {}, Target::kCluster);
    if (job.ok()) {
      std::cout << CanonicalText(ToJson(job.job)) << "\n";
      continue;
    }
    std::string problems;
    for (const Problem& problem : job.problems) problems += FormatProblem(problem, "") + "; ";
    std::cout << "refused: " << problems << "\n";
  }
  return std::cout.flush() ? 0 : 1;
}
