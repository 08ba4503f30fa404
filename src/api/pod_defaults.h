// What every pod of ours is like, whoever makes it (docs/operator.md). Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace parallelrun::api {

inline constexpr char kBundleFolder[] = "/opt/parallelrun";  // of the programs, in a pod

// The command line that starts a program of the bundle, whatever libraries the image has.
std::vector<std::string> InBundle(const std::string& program,
                                  const std::vector<std::string>& arguments);

// securityContext of a pod, and of each container, where neither the job nor the platform decides.
nlohmann::json DefaultPodSecurity();
nlohmann::json DefaultContainerSecurity();

}  // namespace parallelrun::api
