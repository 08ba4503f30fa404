#include "api/pod_defaults.h"

namespace parallelrun::api {
namespace {

constexpr int kUser = 65532;

}  // namespace

std::vector<std::string> InBundle(const std::string& program,
                                  const std::vector<std::string>& arguments) {
  const std::string bundle = kBundleFolder;
  std::vector<std::string> words = {bundle + "/lib/ld.so", "--library-path", bundle + "/lib",
                                    bundle + "/bin/" + program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

nlohmann::json DefaultPodSecurity() {
  return {{"runAsNonRoot", true},
          {"runAsUser", kUser},
          {"runAsGroup", kUser},
          {"fsGroup", kUser},
          {"fsGroupChangePolicy", "OnRootMismatch"},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

nlohmann::json DefaultContainerSecurity() {
  return {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}};
}

}  // namespace parallelrun::api
