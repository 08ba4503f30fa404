// What the coordinator tells a node of the job (docs/coordinator-api.md): each key once, with what
// is read of it and what the worker processes hear of it. Pure; any thread.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "agent/agent_config.h"
#include "base/json.h"

namespace parallelrun::agent {

struct JobKey {
  std::string name;
  std::function<void(Members& in, const char* key, JobSettings& job, Registration& registration)>
      read;
  // Its value in the start frame, under the same name; null: the processes do not hear of it.
  std::function<nlohmann::json(const JobSettings& job)> start = nullptr;
};

// In the order in which they are read.
const std::vector<JobKey>& JobKeys();

// The settings, and what of them the core decides by. kInvalid names the key that is wrong.
Result<JobSettings> ReadJobKeys(const nlohmann::json& object, Registration& registration);

}  // namespace parallelrun::agent
