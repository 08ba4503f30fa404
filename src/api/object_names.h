// What the objects of a job are called on a cluster (docs/operator.md, "The objects of a job").
// Pure; any thread.
#pragma once

#include <string>

namespace parallelrun::api {

// "<job>-<first 5 digits of the uid>": the start of all their names.
std::string ObjectBase(const std::string& job, const std::string& uid);
std::string AccessSecretName(const std::string& job, const std::string& uid);
std::string CoordinatorServiceName(const std::string& job, const std::string& uid);
std::string StateClaimName(const std::string& job, const std::string& uid);

}  // namespace parallelrun::api
