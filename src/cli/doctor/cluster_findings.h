// What `parallelrun doctor` finds of a cluster for one of its users, and what to do about it. Pure:
// what kubectl has answered in, lines out. cluster_facts.h asks it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/doctor/findings.h"

namespace parallelrun::cli {

struct OperatorPod {
  std::string name_space;
  std::string name;
  std::string release;  // of its label; empty: it does not say
  bool ready = false;
};

struct StorageClasses {
  size_t count = 0;
  std::string by_default;  // the one of claims that name none; empty: there is none
};

// What this command asks of the API server, in the words of a role.
struct Right {
  const char* purpose;  // the commands that need it
  const char* verb;
  const char* group;
  const char* resource;
  const char* subresource;
};
const std::vector<Right>& RightsOfCommands();

struct ClusterFacts {
  std::string problem;  // why nothing can be asked; empty: it answers
  std::string name_space;
  std::string server;       // "v1.35.4"
  bool knows_jobs = false;  // the definition is there
  std::optional<std::vector<OperatorPod>>
      operators;  // these two: nothing where the user may not look
  std::optional<StorageClasses> storage;
  // By RightsOfCommands(); nothing where that was not told.
  std::vector<std::optional<bool>> rights;
};

// "v1.35.4" of `kubectl version`; "" where only kubectl itself has answered.
std::string ServerVersionOf(const nlohmann::json& versions);
// Whether the API groups of a server have that of ParallelRunJobs.
bool KnowsJobs(const nlohmann::json& groups);
std::vector<OperatorPod> OperatorsOf(const nlohmann::json& pods);
StorageClasses StorageClassesOf(const nlohmann::json& classes);

// One review for each of RightsOfCommands(), to be created; and how each answer is printed, a line
// for each, of which the last text is what RightsOf reads.
nlohmann::json ReviewsOf(const std::string& name_space);
inline constexpr char kReviewLine[] =
    "jsonpath={.spec.resourceAttributes.verb}/{.spec.resourceAttributes.group}/"
    "{.spec.resourceAttributes.resource}/{.spec.resourceAttributes.subresource}="
    "{.status.allowed}{\"\\n\"}";
std::vector<std::optional<bool>> RightsOf(const std::string& lines);

std::vector<Finding> ClusterFindingsOf(const ClusterFacts& facts);

}  // namespace parallelrun::cli
