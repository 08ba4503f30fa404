#include "cli/doctor/cluster_facts.h"

#include <optional>
#include <utility>

#include "base/json.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr char kOperators[] =
    "--selector=app.kubernetes.io/name=parallelrun,app.kubernetes.io/component=operator";

class Asking {
 public:
  explicit Asking(KubectlWhere where) : where_(std::move(where)) {}

  // Nothing where it could not tell, of which kubectl has said why.
  std::optional<std::string> Text(std::vector<std::string> more,
                                  const std::string& input = "") const {
    std::vector<std::string> words = where_.Words();
    words.insert(words.end(), more.begin(), more.end());
    words.emplace_back("--request-timeout=20s");
    Result<KubectlAnswer> answer = AskKubectl(words, input);
    if (!answer.ok() || answer->status != 0) return std::nullopt;
    return std::move(answer->output);
  }
  std::optional<json> Object(std::vector<std::string> more) const {
    more.emplace_back("--output=json");
    const std::optional<std::string> text = Text(std::move(more));
    return text ? ParseObject(*text) : std::nullopt;
  }

 private:
  const KubectlWhere where_;
};

// A review that is made is answered, and kept nowhere.
std::vector<std::optional<bool>> AskRights(const Asking& kubectl, const std::string& name_space) {
  const std::optional<std::string> lines =
      kubectl.Text({"create", "--filename=-", std::string("--output=") + kReviewLine},
                   ReviewsOf(name_space).dump());
  return RightsOf(lines.value_or(""));
}

}  // namespace

ClusterFacts GatherClusterFacts(const KubectlWhere& where) {
  ClusterFacts facts;
  std::vector<std::string> words = where.Words();
  words.insert(words.end(), {"version", "--output=json", "--request-timeout=20s"});
  const Result<KubectlAnswer> version = AskKubectl(words);
  if (!version.ok()) {
    facts.problem = version.error().message;
    return facts;
  }
  const std::optional<json> versions = ParseObject(version->output);
  if (versions) facts.server = ServerVersionOf(*versions);
  if (version->status != 0 || facts.server.empty()) {
    facts.problem = "it does not answer kubectl";
    return facts;
  }
  const Asking kubectl(where);
  facts.name_space = where.name_space;
  if (facts.name_space.empty()) {
    facts.name_space =
        kubectl.Text({"config", "view", "--minify", "--output=jsonpath={..namespace}"})
            .value_or("");
  }
  if (facts.name_space.empty()) facts.name_space = "default";
  // What everybody who is known to the cluster may ask.
  const std::optional<json> groups = ParseObject(kubectl.Text({"get", "--raw=/apis"}).value_or(""));
  if (groups) facts.knows_jobs = KnowsJobs(*groups);
  const std::optional<json> pods = kubectl.Object({"get", "pods", "--all-namespaces", kOperators});
  if (pods) facts.operators = OperatorsOf(*pods);
  const std::optional<json> classes = kubectl.Object({"get", "storageclasses"});
  if (classes) facts.storage = StorageClassesOf(*classes);
  if (facts.knows_jobs) facts.rights = AskRights(kubectl, facts.name_space);
  return facts;
}

}  // namespace parallelrun::cli
