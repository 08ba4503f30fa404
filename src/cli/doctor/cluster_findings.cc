#include "cli/doctor/cluster_findings.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include "base/escape.h"
#include "base/json.h"
#include "base/version.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;

constexpr int kOldestMinor = 32;  // of Kubernetes 1
constexpr char kJobs[] = "parallelrun.dev";

constexpr char kToRun[] = "submit, stop";
constexpr char kToLook[] = "fetch, failures, logs";
constexpr char kToShow[] = "page";

std::string Word(const std::string& text) { return Printable(text, kShown); }

std::string Words(const Right& right) {
  const std::string below = *right.subresource == '\0' ? "" : std::string("/") + right.subresource;
  return fmt::format("{} {}{}", right.verb, right.resource, below);
}

std::string KeyOf(const Right& right) {
  return fmt::format("{}/{}/{}/{}", right.verb, right.group, right.resource, right.subresource);
}

// 35 of "v1.35.4-eks-1"; nothing of what is no such version.
std::optional<int> MinorOf(std::string_view version) {
  if (!version.starts_with("v1.")) return std::nullopt;
  int minor = 0;
  const std::string_view rest = version.substr(3);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), minor);
  if (error != std::errc() || end == rest.data()) return std::nullopt;
  return minor;
}

Finding LookAtServer(const ClusterFacts& facts) {
  const std::optional<int> minor = MinorOf(facts.server);
  const std::string text = "Kubernetes " + Word(facts.server);
  if (minor && *minor < kOldestMinor) {
    return {Level::kFail, "cluster", text,
            fmt::format("ParallelRun needs 1.{} or newer", kOldestMinor)};
  }
  return {Level::kOk, "cluster", text, ""};
}

Finding LookAtDefinition(const ClusterFacts& facts) {
  if (facts.knows_jobs) return {Level::kOk, "definition", "ParallelRunJob is known", ""};
  return {Level::kFail, "definition", "the cluster knows no ParallelRunJob",
          "install the chart, which brings it (docs/helm.md); ask who runs the cluster"};
}

Finding LookAtOperators(const ClusterFacts& facts) {
  const char* const kSubject = "operator";
  if (!facts.operators) {
    return {Level::kOk, kSubject, "your rights do not let you see it (list pods everywhere)", ""};
  }
  if (facts.operators->empty()) {
    return {Level::kFail, kSubject, "no pod of one is there",
            "install the chart (docs/helm.md): without an operator no job begins"};
  }
  const OperatorPod* ready = nullptr;
  for (const OperatorPod& pod : *facts.operators) {
    if (pod.ready) ready = &pod;
  }
  if (ready == nullptr) {
    const OperatorPod& pod = facts.operators->front();
    return {Level::kFail, kSubject, fmt::format("pod {} is not ready", Word(pod.name)),
            fmt::format("kubectl describe pod {} --namespace {}", Word(pod.name),
                        Word(pod.name_space))};
  }
  std::string text =
      fmt::format("pod {} of namespace {} is ready", Word(ready->name), Word(ready->name_space));
  if (ready->release.empty()) return {Level::kOk, kSubject, text, ""};
  text += ", release " + Word(ready->release);
  if (ready->release == kVersion) return {Level::kOk, kSubject, text, ""};
  return {Level::kWarn, kSubject, text,
          fmt::format("this command is of release {}: fields that only one of the two knows are "
                      "refused",
                      kVersion)};
}

// One line for the commands of one purpose. Who cannot submit can do nothing here.
Finding LookAtRights(const ClusterFacts& facts, const char* subject, const std::string& purpose,
                     Level missing) {
  std::string lacks;
  bool told = true;
  const std::vector<Right>& rights = RightsOfCommands();
  for (size_t i = 0; i < rights.size(); ++i) {
    if (rights[i].purpose != purpose) continue;
    const std::optional<bool> allowed = i < facts.rights.size() ? facts.rights[i] : std::nullopt;
    told = told && allowed.has_value();
    if (allowed && !*allowed) lacks += (lacks.empty() ? "" : ", ") + Words(rights[i]);
  }
  const std::string in = " in namespace " + Word(facts.name_space);
  if (!lacks.empty()) {
    return {missing, subject, fmt::format("{}: not allowed{}: {}", purpose, in, lacks),
            "ask who runs the cluster for a role with them (docs/cli.md has all)"};
  }
  if (!told) return {Level::kWarn, subject, purpose + ": the cluster does not say" + in, ""};
  return {Level::kOk, subject, purpose + in, ""};
}

Finding LookAtStorage(const ClusterFacts& facts) {
  const char* const kSubject = "storage";
  if (!facts.storage) {
    return {Level::kOk, kSubject, "your rights do not let you see the StorageClasses", ""};
  }
  if (!facts.storage->by_default.empty()) {
    return {Level::kOk, kSubject,
            fmt::format("claims without a class get {}", Word(facts.storage->by_default)), ""};
  }
  if (facts.storage->count == 0) {
    return {Level::kWarn, kSubject, "there is no StorageClass",
            "make the claims' volumes by hand; or leave claims out, with state.store"};
  }
  return {Level::kWarn, kSubject, "no StorageClass is the default one",
          "name one in each claim (storageClassName), also in spec.state.volumeClaimTemplate; a "
          "claim without one stays Pending"};
}

}  // namespace

const std::vector<Right>& RightsOfCommands() {
  static const std::vector<Right> kRights = {
      {kToRun, "create", kJobs, "parallelrunjobs", ""},
      {kToRun, "get", kJobs, "parallelrunjobs", ""},
      {kToRun, "patch", kJobs, "parallelrunjobs", ""},
      {kToRun, "create", "", "configmaps", ""},
      {kToRun, "patch", "", "configmaps", ""},
      {kToLook, "get", kJobs, "parallelrunjobs", ""},
      {kToLook, "get", "", "pods", ""},
      {kToLook, "list", "", "pods", ""},
      {kToLook, "create", "", "pods", ""},
      {kToLook, "delete", "", "pods", ""},
      {kToLook, "create", "", "pods", "exec"},
      {kToShow, "get", kJobs, "parallelrunjobs", ""},
      {kToShow, "get", "", "secrets", ""},
      {kToShow, "list", "", "services", ""},
      {kToShow, "create", "", "pods", "portforward"},
  };
  return kRights;
}

std::string ServerVersionOf(const json& versions) {
  return lenient::Text(lenient::At(versions, "serverVersion"), "gitVersion");
}

bool KnowsJobs(const json& groups) {
  const json& list = lenient::List(groups, "groups");
  return std::any_of(list.begin(), list.end(),
                     [](const json& group) { return lenient::Text(group, "name") == kJobs; });
}

std::vector<OperatorPod> OperatorsOf(const json& pods) {
  std::vector<OperatorPod> operators;
  for (const json& pod : lenient::List(pods, "items")) {
    const json& metadata = lenient::At(pod, "metadata");
    OperatorPod one;
    one.name_space = lenient::Text(metadata, "namespace");
    one.name = lenient::Text(metadata, "name");
    one.release = lenient::Text(lenient::At(metadata, "labels"), "app.kubernetes.io/version");
    for (const json& condition : lenient::List(lenient::At(pod, "status"), "conditions")) {
      if (lenient::Text(condition, "type") != "Ready") continue;
      one.ready = lenient::Text(condition, "status") == "True";
    }
    operators.push_back(std::move(one));
  }
  return operators;
}

StorageClasses StorageClassesOf(const json& classes) {
  StorageClasses seen;
  for (const json& one : lenient::List(classes, "items")) {
    ++seen.count;
    const json& metadata = lenient::At(one, "metadata");
    const bool by_default = lenient::Text(lenient::At(metadata, "annotations"),
                                          "storageclass.kubernetes.io/is-default-class") == "true";
    if (by_default) seen.by_default = lenient::Text(metadata, "name");
  }
  return seen;
}

json ReviewsOf(const std::string& name_space) {
  json reviews = json::array();
  for (const Right& right : RightsOfCommands()) {
    json attributes = {{"namespace", name_space},
                       {"verb", right.verb},
                       {"group", right.group},
                       {"resource", right.resource}};
    if (*right.subresource != '\0') attributes["subresource"] = right.subresource;
    reviews.push_back({{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SelfSubjectAccessReview"},
                       {"spec", {{"resourceAttributes", std::move(attributes)}}}});
  }
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(reviews)}};
}

std::vector<std::optional<bool>> RightsOf(const std::string& lines) {
  std::map<std::string, bool, std::less<>> allowed;
  std::string_view left = lines;
  while (!left.empty()) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    const size_t equals = line.rfind('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view answer = line.substr(equals + 1);
    if (answer != "true" && answer != "false") continue;
    allowed[std::string(line.substr(0, equals))] = answer == "true";
  }
  std::vector<std::optional<bool>> rights;
  for (const Right& right : RightsOfCommands()) {
    const auto found = allowed.find(KeyOf(right));
    rights.push_back(found == allowed.end() ? std::nullopt : std::optional(found->second));
  }
  return rights;
}

std::vector<Finding> ClusterFindingsOf(const ClusterFacts& facts) {
  if (!facts.problem.empty()) {
    return {{Level::kFail, "cluster", Printable(facts.problem, kShownLongest),
             "set up kubectl for it, and choose it with --context"}};
  }
  std::vector<Finding> findings = {LookAtServer(facts), LookAtDefinition(facts),
                                   LookAtOperators(facts)};
  // Of what the cluster does not know nobody has a right.
  if (facts.knows_jobs) {
    findings.push_back(LookAtRights(facts, "may run", kToRun, Level::kFail));
    findings.push_back(LookAtRights(facts, "may look", kToLook, Level::kWarn));
    findings.push_back(LookAtRights(facts, "may show", kToShow, Level::kWarn));
  }
  findings.push_back(LookAtStorage(facts));
  return findings;
}

}  // namespace parallelrun::cli
