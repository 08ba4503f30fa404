#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "cli/fetch/arriving_files.h"
#include "cli/fetch/job_logs.h"
#include "cli/fetch/reader_pod.h"
#include "cli/fetch/wanted_files.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

json Job() {
  return json::parse(R"({
    "metadata": {"name": "digits", "uid": "0a1b2c3d-0000"},
    "spec": {
      "environment": {"imagePullSecrets": [{"name": "pull"}]},
      "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "d"}},
                  {"name": "out", "persistentVolumeClaim": {"claimName": "o"}}],
      "output": {"volume": "out"}
    },
    "status": {
      "logs": "out/digits/logs",
      "effective": {"runtimeImage": "runtime@sha256:1"},
      "output": {"path": "/mnt/out/digits/output/rows.txt", "rows": 3, "bytes": 3, "sha256": "5f"}
    }
  })");
}

TEST(WantedFiles, TheOutputComesWithItsIndexAndItsDigest) {
  const Result<WantedFiles> wanted = FindWanted(Job(), FetchWhat::kOutput);
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(wanted->volume, "out");
  EXPECT_EQ(wanted->folder, "digits/output");
  EXPECT_THAT(wanted->only, ElementsAre("rows.txt", "rows.txt.index.jsonl"));
  ASSERT_TRUE(wanted->must);
  EXPECT_EQ(wanted->must->bytes, 3U);
  EXPECT_EQ(wanted->must->sha256, "5f");
}

TEST(WantedFiles, WhatIsNotThereYetSaysSo) {
  json job = Job();
  job.erase("status");
  for (const FetchWhat what : {FetchWhat::kOutput, FetchWhat::kLogs, FetchWhat::kReport}) {
    const Result<WantedFiles> wanted = FindWanted(job, what);
    ASSERT_FALSE(wanted.ok());
    EXPECT_EQ(wanted.error().code, Code::kUnavailable);
    EXPECT_THAT(wanted.error().message, HasSubstr("job digits has no"));
  }
}

TEST(WantedFiles, AnOutputInAStoreIsCopiedFromThere) {
  json job = Job();
  job["spec"]["output"] = {{"store", "bucket"}};
  job["spec"]["stores"] = {{{"name", "bucket"}, {"endpoint", "https://s3.local"}}};
  job["status"]["output"]["path"] = "s3://bucket/it's here/rows.txt";
  const Result<WantedFiles> wanted = FindWanted(job, FetchWhat::kOutput);
  ASSERT_FALSE(wanted.ok());
  EXPECT_THAT(wanted.error().message, HasSubstr("aws s3 cp --endpoint-url https://s3.local "
                                                "'s3://bucket/it'\\''s here/rows.txt' ."));
  EXPECT_FALSE(FindWanted(job, FetchWhat::kSideFiles).ok());
}

TEST(WantedFiles, LogsInAStoreAreCopiedFromThere) {
  json job = Job();
  job["spec"]["logs"] = {{"store", "bucket"}};
  job["spec"]["stores"] = {{{"name", "bucket"}, {"endpoint", "https://s3.local"}}};
  job["status"]["logs"] = "s3://bucket/digits/logs";
  for (const FetchWhat what : {FetchWhat::kLogs, FetchWhat::kReport}) {
    const Result<WantedFiles> wanted = FindWanted(job, what);
    ASSERT_FALSE(wanted.ok());
    EXPECT_THAT(wanted.error().message,
                HasSubstr("aws s3 cp --recursive --endpoint-url https://s3.local "
                          "s3://bucket/digits/logs ."));
  }
}

TEST(WantedFiles, APartOfTheLogsIsAFolderOfThem) {
  const Result<WantedFiles> top = FindInLogs(Job(), ".", {"job_result.txt"});
  ASSERT_TRUE(top.ok());
  EXPECT_EQ(top->volume, "out");
  EXPECT_EQ(top->folder, "digits/logs");
  EXPECT_THAT(top->only, ElementsAre("job_result.txt"));
  EXPECT_FALSE(top->must);
  const Result<WantedFiles> part = FindInLogs(Job(), "user/error", {});
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->folder, "digits/logs/user/error");
  EXPECT_THAT(part->only, IsEmpty());
  json whole_volume = Job();
  whole_volume["status"]["logs"] = "out";
  EXPECT_EQ(FindInLogs(whole_volume, "user/error", {})->folder, "user/error");
  json none = Job();
  none.erase("status");
  EXPECT_EQ(FindInLogs(none, ".", {}).error().code, Code::kUnavailable);
}

TEST(WantedFiles, LogsInAStoreAreReadAsTheJobWritesThem) {
  EXPECT_FALSE(LogStoreOf(Job()));
  json job = Job();
  job["spec"]["logs"] = {{"store", "bucket"}};
  job["spec"]["stores"] = {
      {{"name", "other"}, {"endpoint", "https://other"}},
      {{"name", "bucket"}, {"endpoint", "https://s3.local"}, {"region", "here"}}};
  job["status"]["logs"] = "s3://bucket/digits/logs";
  std::optional<store::Wished> wished = LogStoreOf(job);
  ASSERT_TRUE(wished);
  EXPECT_EQ(wished->url, "s3://bucket/digits/logs");
  EXPECT_EQ(wished->endpoint, "https://s3.local");
  EXPECT_EQ(wished->region, "here");
  EXPECT_FALSE(wished->path_style);
  job["spec"]["stores"][1]["pathStyle"] = false;
  wished = LogStoreOf(job);
  ASSERT_TRUE(wished && wished->path_style);
  EXPECT_FALSE(*wished->path_style);
  // A job that says nothing of its logs has them where its state is, and that where its output is.
  job["spec"].erase("logs");
  job["spec"]["output"] = {{"store", "bucket"}};
  EXPECT_EQ(LogStoreOf(job)->endpoint, "https://s3.local");
  job["spec"]["state"] = {{"store", "other"}};
  EXPECT_EQ(LogStoreOf(job)->endpoint, "https://other");
}

TEST(NamedJob, IsToldAsItIsTyped) {
  NamedJob job;
  job.name = "digits";
  EXPECT_FALSE(job.IsOfCluster());
  EXPECT_EQ(job.Words(), "digits");
  job.where = {"the lab", "team"};
  EXPECT_TRUE(job.IsOfCluster());
  EXPECT_EQ(job.Words(), "digits --namespace team --context 'the lab'");
}

TEST(WantedFiles, NoPlaceLeadsOutOfItsVolume) {
  for (const char* logs : {"out/../etc", "out//etc", "/etc", "", "out/a/../../b"}) {
    json job = Job();
    job["status"]["logs"] = logs;
    EXPECT_FALSE(FindWanted(job, FetchWhat::kLogs).ok()) << logs;
  }
  for (const char* path : {"/etc/passwd", "/mnt/out/../../etc/passwd", "/mnt/out", "/mnt/x/"}) {
    json job = Job();
    job["status"]["output"]["path"] = path;
    const Result<WantedFiles> wanted = FindWanted(job, FetchWhat::kOutput);
    EXPECT_TRUE(!wanted.ok() || wanted->volume.empty()) << path;
  }
}

TEST(WantedFiles, SideFilesAreWhatTheJobItselfHasNot) {
  json job = Job();
  job["spec"]["output"] = {{"volume", "out"}, {"path", "shared/"}, {"fileName", "rows.txt"}};
  job["spec"]["logs"] = {{"path", "shared/logs"}};
  job["spec"]["state"] = {{"volume", "data"}, {"path", "shared/state"}};
  const Result<WantedFiles> wanted = FindWanted(job, FetchWhat::kSideFiles);
  ASSERT_TRUE(wanted.ok());
  EXPECT_EQ(wanted->folder, "shared");
  EXPECT_THAT(wanted->except,
              UnorderedElementsAre("rows.txt", "rows.txt.index.jsonl", ".rows.txt.*",
                                   "rows.txt.set-aside-*", "rows.txt.index.jsonl.set-aside-*",
                                   ".parallelrun-staged-*", "logs"));
}

TEST(ReaderPod, HasTheVolumeReadOnlyAndNothingElse) {
  const Result<json> pod = ReaderPod(Job(), nullptr, {"digits-0a1b2-reader-1", "out", 3600});
  ASSERT_TRUE(pod.ok());
  EXPECT_EQ((*pod)["metadata"]["ownerReferences"][0],
            (json{{"apiVersion", "parallelrun.dev/v1alpha1"},
                  {"kind", "ParallelRunJob"},
                  {"name", "digits"},
                  {"uid", "0a1b2c3d-0000"}}));
  // The operator takes pods with this one for its own.
  EXPECT_FALSE((*pod)["metadata"]["labels"].contains("app.kubernetes.io/managed-by"));
  const json& spec = (*pod)["spec"];
  EXPECT_EQ(spec["activeDeadlineSeconds"], 3600);
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  EXPECT_EQ(spec["securityContext"]["runAsNonRoot"], true);
  EXPECT_EQ(spec["imagePullSecrets"], json::parse(R"([{"name": "pull"}])"));
  EXPECT_EQ(spec["volumes"], json::array({Job()["spec"]["volumes"][1]}));
  const json& container = spec["containers"][0];
  EXPECT_EQ(container["image"], "runtime@sha256:1");
  EXPECT_EQ(container["volumeMounts"],
            json::parse(R"([{"name": "out", "mountPath": "/mnt/out", "readOnly": true}])"));
  EXPECT_EQ(container["securityContext"]["capabilities"]["drop"][0], "ALL");
}

TEST(ReaderPod, IsWhatTheTemplatesMakeOfACoordinator) {
  json job = Job();
  job["spec"]["podTemplate"]["spec"] = {
      {"securityContext", {{"fsGroup", 7}, {"runAsUser", 7}}},
      {"nodeSelector", {{"gpu", "yes"}}},
      {"tolerations", {{{"key", "team"}}}},
      {"containers",
       {{{"name", "worker"}, {"env", {{{"name", "KEY"}}}}}, {{"name", "proxy"}, {"image", "p"}}}}};
  job["spec"]["coordinator"]["podTemplate"]["spec"] = {
      {"securityContext", {{"runAsUser", 8}}},
      {"nodeSelector", {{"disk", "ssd"}}},
      {"containers",
       {{{"name", "coordinator"}, {"securityContext", {{"readOnlyRootFilesystem", true}}}}}}};
  const Result<json> pod = ReaderPod(job, nullptr, {"r", "out", 1});
  ASSERT_TRUE(pod.ok());
  const json& spec = (*pod)["spec"];
  EXPECT_EQ(spec["securityContext"]["fsGroup"], 7);
  EXPECT_EQ(spec["securityContext"]["runAsUser"], 8);
  EXPECT_EQ(spec["nodeSelector"], (json{{"disk", "ssd"}}));
  EXPECT_EQ(spec["tolerations"], json::parse(R"([{"key": "team"}])"));
  ASSERT_EQ(spec["containers"].size(), 1U);
  EXPECT_EQ(spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"], true);
  EXPECT_FALSE(spec["containers"][0].contains("env"));
}

TEST(ReaderPod, IsLikeTheCoordinatorThatIsStillThere) {
  const json coordinator = json::parse(R"({"spec": {
    "securityContext": {"fsGroup": 1000620000}, "serviceAccountName": "robot",
    "nodeName": "node-1", "volumes": [
      {"name": "parallelrun-access", "secret": {"secretName": "keys"}},
      {"name": "out", "nfs": {"server": "s", "path": "/p"}}],
    "affinity": {"podAffinity": {}, "nodeAffinity": {"a": 1}},
    "containers": [{"name": "coordinator", "image": "other:2", "imagePullPolicy": "Never",
      "env": [{"name": "KEY"}], "securityContext": {"runAsUser": 1000620000}}]}})");
  const Result<json> pod = ReaderPod(Job(), coordinator, {"r", "out", 1});
  ASSERT_TRUE(pod.ok());
  const json& spec = (*pod)["spec"];
  EXPECT_EQ(spec["securityContext"], (json{{"fsGroup", 1000620000}}));
  EXPECT_EQ(spec["serviceAccountName"], "robot");
  EXPECT_EQ(spec["affinity"], json::parse(R"({"nodeAffinity": {"a": 1}})"));
  EXPECT_FALSE(spec.contains("nodeName"));
  EXPECT_EQ(spec["volumes"],
            json::parse(R"([{"name": "out", "nfs": {"server": "s", "path": "/p"}}])"));
  EXPECT_EQ(spec["containers"][0]["image"], "other:2");
  EXPECT_EQ(spec["containers"][0]["imagePullPolicy"], "Never");
  EXPECT_EQ(spec["containers"][0]["securityContext"], (json{{"runAsUser", 1000620000}}));
  EXPECT_FALSE(spec["containers"][0].contains("env"));
}

TEST(ReaderPod, OfAJobThatNeverBeganThereIsNone) {
  json job = Job();
  job["status"].erase("effective");
  EXPECT_FALSE(ReaderPod(job, nullptr, {"r", "out", 1}).ok());
  EXPECT_FALSE(ReaderPod(Job(), nullptr, {"r", "absent", 1}).ok());
}

TEST(ReaderPod, TheClaimThatTheOperatorMadeIsFoundWithoutACoordinator) {
  json job = Job();
  job["metadata"]["uid"] = "0a1b2c3d-0000";
  const Result<json> pod = ReaderPod(job, nullptr, {"r", "parallelrun-state", 1});
  ASSERT_TRUE(pod.ok());
  const std::string name = job["metadata"]["name"];
  EXPECT_EQ((*pod)["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"],
            name + "-0a1b2-state");
}

TEST(ReaderPod, TheDeadlineGrowsWithWhatIsKnownToCome) {
  EXPECT_EQ(ReaderSeconds({}), 3600);
  WantedFiles wanted;
  wanted.must = ExpectedFile{"rows.txt", 5'000'000'000, "5f"};
  EXPECT_EQ(ReaderSeconds(wanted), 8600);
  wanted.must->bytes = UINT64_MAX;
  EXPECT_LT(ReaderSeconds(wanted), 32 * 24 * 3600);
}

TEST(ReaderPod, WhyItDoesNotRun) {
  const auto pod = [](const char* status) { return json{{"status", json::parse(status)}}; };
  EXPECT_EQ(WhyNotRunning(pod(R"({"phase": "Running", "containerStatuses": [
    {"name": "reader", "state": {"running": {}}}]})")),
            "");
  EXPECT_EQ(WhyNotRunning(pod(R"({"phase": "Pending", "containerStatuses": [
    {"name": "reader", "state": {"waiting": {"reason": "ErrImagePull", "message": "no\nsuch"}}}]})")),
            "ErrImagePull: no\\nsuch");
  EXPECT_EQ(WhyNotRunning(pod(R"({"phase": "Pending", "conditions": [
    {"type": "PodScheduled", "status": "False", "message": "0/2 nodes"}]})")),
            "no host takes it: 0/2 nodes");
  EXPECT_THAT(WhyNotRunning(pod(R"({"phase": "Failed", "reason": "Evicted", "message": "disk"})")),
              HasSubstr("Evicted disk"));
}

class ArrivingFilesTest : public testing::Test {
 protected:
  std::unique_ptr<ArrivingFiles> Begin(std::optional<ExpectedFile> must = {}) {
    Result<std::unique_ptr<ArrivingFiles>> begun = ArrivingFiles::Begin(*files_, target_);
    EXPECT_TRUE(begun.ok());
    EXPECT_TRUE((*begun)->Anew(std::move(must)).ok());
    return std::move(*begun);
  }
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  const TempFolder folder_;
  const std::string target_ = folder_.path("got");
  const std::unique_ptr<Files> files_ = MakeSystemFiles();
};

TEST_F(ArrivingFilesTest, TheFolderAppearsWhole) {
  std::unique_ptr<ArrivingFiles> arriving = Begin();
  ASSERT_TRUE(arriving->Begin("user/error/a.txt").ok());
  ASSERT_TRUE(arriving->Add("on").ok());
  ASSERT_TRUE(arriving->Add("e").ok());
  ASSERT_TRUE(arriving->Begin("user/b.txt").ok());
  EXPECT_FALSE(fs::exists(target_));
  ASSERT_TRUE(arriving->Finish().ok());
  arriving.reset();
  EXPECT_THAT(Left(), ElementsAre("got"));
  EXPECT_EQ(folder_.Read("got/user/error/a.txt"), "one");
  EXPECT_EQ(folder_.Read("got/user/b.txt"), "");
}

TEST_F(ArrivingFilesTest, WhatIsNotFinishedLeavesNothing) {
  std::unique_ptr<ArrivingFiles> arriving = Begin();
  ASSERT_TRUE(arriving->Begin("a/b").ok());
  arriving.reset();
  EXPECT_THAT(Left(), IsEmpty());
}

TEST_F(ArrivingFilesTest, NothingThatIsThereIsReplaced) {
  folder_.Write("got/mine.txt", "mine");
  EXPECT_FALSE(ArrivingFiles::Begin(*files_, target_).ok());
  fs::remove_all(target_);
  fs::create_symlink(folder_.path(), target_);
  EXPECT_FALSE(ArrivingFiles::Begin(*files_, target_).ok());
  fs::remove(target_);
  fs::create_directory(target_);
  std::unique_ptr<ArrivingFiles> arriving = Begin();
  ASSERT_TRUE(arriving->Begin("a.txt").ok());
  EXPECT_FALSE(arriving->Begin("a.txt").ok());
  ASSERT_TRUE(arriving->Begin("b.txt").ok());
  folder_.Write("got/mine.txt", "mine");  // meanwhile
  EXPECT_FALSE(arriving->Finish().ok());
  arriving.reset();
  EXPECT_EQ(folder_.Read("got/mine.txt"), "mine");
  EXPECT_THAT(Left(), ElementsAre("got"));
}

TEST_F(ArrivingFilesTest, TheOutputIsWhatWasPublished) {
  const std::string sha256 = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
  const auto arrive = [&](const ExpectedFile& must, const std::string& text) {
    std::unique_ptr<ArrivingFiles> arriving = Begin(must);
    EXPECT_TRUE(arriving->Begin("rows.txt").ok());
    EXPECT_TRUE(arriving->Add(text).ok());
    return arriving->Finish();
  };
  for (const auto& [must, text] :
       std::vector<std::pair<ExpectedFile, std::string>>{{{"rows.txt", 3, sha256}, "two"},
                                                         {{"rows.txt", 4, sha256}, "one"},
                                                         {{"other.txt", 3, sha256}, "one"}}) {
    EXPECT_FALSE(arrive(must, text).ok());
    EXPECT_THAT(Left(), IsEmpty());
  }
  EXPECT_TRUE(arrive({"rows.txt", 3, sha256}, "one").ok());
  EXPECT_EQ(folder_.Read("got/rows.txt"), "one");
}

TEST_F(ArrivingFilesTest, AnewForgetsWhatCameBefore) {
  const std::string sha256 = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
  std::unique_ptr<ArrivingFiles> arriving = Begin(ExpectedFile{"rows.txt", 3, sha256});
  ASSERT_TRUE(arriving->Begin("rows.txt").ok());
  ASSERT_TRUE(arriving->Add("on").ok());
  ASSERT_TRUE(arriving->Anew(ExpectedFile{"rows.txt", 3, sha256}).ok());
  ASSERT_TRUE(arriving->Begin("rows.txt").ok());
  ASSERT_TRUE(arriving->Add("one").ok());
  EXPECT_TRUE(arriving->Finish().ok());
}

}  // namespace
}  // namespace parallelrun::cli
