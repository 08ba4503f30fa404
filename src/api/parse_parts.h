// Internal to src/api: the parts of ParseJob. Each reads one value into its place in the job and
// adds what is wrong to the value's problems.
#pragma once

#include "api/fields.h"
#include "api/job.h"
#include "api/parse.h"

namespace parallelrun {

// parse_volumes.cc
void ReadVolumes(const Value& list, JobSpec& spec);

// parse_data.cc
void ReadInputs(const Value& list, JobSpec& spec);
void ReadSideInputs(const Value& list, JobSpec& spec);
void ReadOutput(const Value& map, Output& output);
void ReadLogs(const Value& map, VolumePath& logs);
void ReadState(const Value& map, StateOptions& state);

// parse_pods.cc
void ReadCode(const Value& map, Target target, CodeSource& code);
void ReadEnvironment(const Value& map, Target target, Environment& environment);
nlohmann::json ReadResources(const Value& map);
nlohmann::json ReadPodTemplate(const Value& map);
void ReadCoordinator(const Value& map, CoordinatorOptions& coordinator);
std::optional<int64_t> ReadQuantity(const Value& value, int64_t scale);
std::optional<std::string> ReadPullPolicy(const Value& value);

// check.cc: what concerns several fields. `job` has its defaults.
void CheckJob(const Job& job, Target target, Problems& problems);

}  // namespace parallelrun
