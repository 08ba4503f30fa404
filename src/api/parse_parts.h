// Internal to src/api: the parts of ParseJob. Each reads one value into its place in the job and
// adds what is wrong to the value's problems.
#pragma once

#include "api/fields.h"
#include "api/job.h"
#include "api/parse.h"
#include "api/sizes.h"

namespace parallelrun::api {

// parse_spec.cc: fields of the spec itself.
void ReadEntryScript(const Value& value, std::string& out);
void ReadArguments(const Value& list, std::vector<std::string>& out);
void ReadPartitionKeys(const Value& list, std::vector<std::string>& out);
std::optional<SizeText> ReadSize(const Value& value);
void ReadMiniBatchSize(const Value& value, JobSpec& spec);
void ReadManagedBy(const Value& value, std::string& out);

// parse_volumes.cc
void ReadVolumes(const Value& list, JobSpec& spec);

// parse_data.cc
void ReadInputs(const Value& list, JobSpec& spec, Target target);
void ReadSideInputs(const Value& list, JobSpec& spec, Target target);
void ReadStores(const Value& list, JobSpec& spec, Target target);
void ReadState(const Value& map, StateOptions& state);

// parse_pods.cc
void ReadCode(const Value& map, Target target, CodeSource& code);
void ReadEnv(const Value& list, nlohmann::json& out);
void ReadEnvFrom(const Value& list, nlohmann::json& out);
nlohmann::json ReadResources(const Value& map);
nlohmann::json ReadPodTemplate(const Value& map);
std::optional<int64_t> ReadQuantity(const Value& value, int64_t scale);

// check.cc: what concerns several fields. `job` has its defaults.
void CheckJob(const Job& job, Target target, const PlaceholderForms& placeholders,
              Problems& problems);

}  // namespace parallelrun::api
