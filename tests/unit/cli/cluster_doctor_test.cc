#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/version.h"
#include "cli/doctor/cluster_findings.h"

namespace parallelrun::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

ClusterFacts SoundCluster() {
  ClusterFacts facts;
  facts.name_space = "team";
  facts.server = "v1.35.4-eks-1";
  facts.knows_jobs = true;
  facts.operators =
      std::vector<OperatorPod>{{"parallelrun-system", "parallelrun-operator-1", kVersion, true}};
  facts.storage = StorageClasses{2, "fast"};
  facts.rights.assign(RightsOfCommands().size(), true);
  return facts;
}

Finding OfCluster(const ClusterFacts& facts, const std::string& subject) {
  for (const Finding& finding : ClusterFindingsOf(facts)) {
    if (finding.subject == subject) return finding;
  }
  ADD_FAILURE() << "nothing is said of " << subject;
  return {};
}

size_t PlaceOf(const std::string& words) {
  const std::vector<Right>& rights = RightsOfCommands();
  const auto found = std::find_if(rights.begin(), rights.end(), [&](const Right& right) {
    return std::string(right.verb) + " " + right.resource + "/" + right.subresource == words;
  });
  EXPECT_NE(found, rights.end()) << words;
  return static_cast<size_t>(found - rights.begin());
}

TEST(ClusterDoctor, AllIsWell) {
  for (const Finding& finding : ClusterFindingsOf(SoundCluster())) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.subject << ": " << finding.text;
    EXPECT_EQ(finding.to_do, "") << finding.subject;
  }
  EXPECT_EQ(OfCluster(SoundCluster(), "cluster").text, "Kubernetes v1.35.4-eks-1");
  EXPECT_EQ(OfCluster(SoundCluster(), "may run").text, "submit, stop in namespace team");
}

TEST(ClusterDoctor, EachThingThatIsWrongIsToldAlone) {
  const auto expect = [](Level level, const std::string& subject, const std::string& text,
                         auto change) {
    ClusterFacts facts = SoundCluster();
    change(facts);
    const Finding finding = OfCluster(facts, subject);
    EXPECT_EQ(finding.level, level) << subject << ": " << finding.text;
    EXPECT_THAT(finding.text + "\n" + finding.to_do, HasSubstr(text)) << subject;
    size_t others = 0;
    for (const Finding& one : ClusterFindingsOf(facts)) others += one.level != Level::kOk ? 1 : 0;
    EXPECT_EQ(others, level == Level::kOk ? 0U : 1U) << subject;
  };
  expect(Level::kFail, "cluster", "does not answer",
         [](auto& f) { f.problem = "it does not answer kubectl"; });
  expect(Level::kFail, "cluster", "1.32 or newer", [](auto& f) { f.server = "v1.31.9"; });
  expect(Level::kOk, "cluster", "v2.0.0", [](auto& f) { f.server = "v2.0.0"; });
  expect(Level::kFail, "definition", "install the chart", [](auto& f) { f.knows_jobs = false; });
  expect(Level::kFail, "operator", "no pod of one", [](auto& f) { f.operators->clear(); });
  expect(Level::kFail, "operator",
         "kubectl describe pod parallelrun-operator-1 --namespace parallelrun-system",
         [](auto& f) { f.operators->front().ready = false; });
  expect(Level::kWarn, "operator", "release 9.9.9",
         [](auto& f) { f.operators->front().release = "9.9.9"; });
  expect(Level::kOk, "operator", "release " + std::string(kVersion), [](auto& f) {
    f.operators->insert(f.operators->begin(),
                        OperatorPod{"parallelrun-system", "older", "9.9.9", false});
  });
  expect(Level::kOk, "operator", "your rights", [](auto& f) { f.operators.reset(); });
  expect(Level::kFail, "may run", "submit, stop: not allowed in namespace team: patch configmaps",
         [](auto& f) { f.rights[PlaceOf("patch configmaps/")] = false; });
  expect(Level::kWarn, "may look", "not allowed in namespace team: create pods/exec",
         [](auto& f) { f.rights[PlaceOf("create pods/exec")] = false; });
  expect(Level::kWarn, "may show", "create pods/portforward",
         [](auto& f) { f.rights[PlaceOf("create pods/portforward")] = false; });
  expect(Level::kWarn, "may look", "does not say",
         [](auto& f) { f.rights[PlaceOf("create pods/exec")] = std::nullopt; });
  expect(Level::kWarn, "storage", "storageClassName", [](auto& f) {
    f.storage = StorageClasses{2, ""};
  });
  expect(Level::kWarn, "storage", "no StorageClass", [](auto& f) {
    f.storage = StorageClasses{0, ""};
  });
  expect(Level::kOk, "storage", "your rights", [](auto& f) { f.storage.reset(); });
}

TEST(ClusterDoctor, WhatOthersHaveWrittenDoesNoHarm) {
  ClusterFacts facts = SoundCluster();
  facts.operators->front() = OperatorPod{"\x1b[1mns", "\x1b[1mpod", "\x1b[1m", true};
  facts.storage->by_default = "\x1b[1mfast";
  facts.server = "v1.40.0\x1b[1m";
  EXPECT_THAT(FindingsText(ClusterFindingsOf(facts)), testing::Not(HasSubstr("\x1b")));
}

TEST(ClusterDoctor, ReadsWhatKubectlAnswers) {
  EXPECT_EQ(ServerVersionOf(json::parse(R"({"clientVersion": {"gitVersion": "v1.36.0"},
                                            "serverVersion": {"gitVersion": "v1.35.4"}})")),
            "v1.35.4");
  EXPECT_EQ(ServerVersionOf(json::parse(R"({"clientVersion": {"gitVersion": "v1.36.0"}})")), "");
  EXPECT_TRUE(KnowsJobs(json::parse(R"({"groups": [{"name": "apps"},
                                                   {"name": "parallelrun.dev"}]})")));
  EXPECT_FALSE(KnowsJobs(json::parse(R"({"groups": [{"name": "apps"}]})")));
  EXPECT_FALSE(KnowsJobs(json::array()));
  const std::vector<OperatorPod> pods = OperatorsOf(json::parse(R"({"items": [
      {"metadata": {"name": "a", "namespace": "n", "labels": {"app.kubernetes.io/version": "1"}},
       "status": {"conditions": [{"type": "Initialized", "status": "True"},
                                 {"type": "Ready", "status": "True"}]}},
      {"metadata": {"name": "b", "namespace": "n"},
       "status": {"conditions": [{"type": "Ready", "status": "False"}]}}]})"));
  ASSERT_EQ(pods.size(), 2U);
  EXPECT_TRUE(pods[0].ready);
  EXPECT_EQ(pods[0].release, "1");
  EXPECT_FALSE(pods[1].ready);
  EXPECT_EQ(pods[1].release, "");
  const StorageClasses classes = StorageClassesOf(json::parse(R"({"items": [
      {"metadata": {"name": "slow"}},
      {"metadata": {"name": "fast", "annotations":
          {"storageclass.kubernetes.io/is-default-class": "true"}}}]})"));
  EXPECT_EQ(classes.count, 2U);
  EXPECT_EQ(classes.by_default, "fast");
}

TEST(ClusterDoctor, RightsAreAskedForOneByOne) {
  const json reviews = ReviewsOf("team");
  ASSERT_EQ(reviews["items"].size(), RightsOfCommands().size());
  const json& exec = reviews["items"][PlaceOf("create pods/exec")]["spec"]["resourceAttributes"];
  EXPECT_EQ(exec, json::parse(R"({"namespace": "team", "verb": "create", "group": "",
                                  "resource": "pods", "subresource": "exec"})"));
  const std::vector<std::optional<bool>> rights =
      RightsOf("create//pods/exec=false\nget//pods/=true\nlist//pods/=\nnonsense\n");
  EXPECT_EQ(rights[PlaceOf("create pods/exec")], std::optional(false));
  EXPECT_EQ(rights[PlaceOf("get pods/")], std::optional(true));
  EXPECT_FALSE(rights[PlaceOf("list pods/")].has_value());
  for (const std::optional<bool>& one : RightsOf("")) EXPECT_FALSE(one.has_value());
}

}  // namespace
}  // namespace parallelrun::cli
