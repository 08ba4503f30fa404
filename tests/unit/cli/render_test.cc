#include "cli/render/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "agent/code_archive.h"
#include "api/block_yaml.h"
#include "api/document.h"
#include "cli/render/code.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Render : public ::testing::Test {
 protected:
  void SetUp() override {
    Write("job/job.yaml", kJob);
    Write("job/score.py", "def run(batch):\n    return batch\n");
  }

  void Write(const std::string& path, const std::string& content) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << content;
  }
  std::string At(const std::string& path) const { return root_ / path; }

  // The documents that a job renders to.
  std::vector<json> Documents(const std::string& code = "",
                              const std::vector<std::string>& overrides = {}) const {
    const auto rendered = RenderJob({At("job/job.yaml"), code, overrides});
    EXPECT_TRUE(rendered.ok()) << rendered.error().message;
    if (!rendered.ok()) return {};
    std::vector<json> documents;
    const std::string& text = rendered->text;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find("---\n", at), text.size());
      const api::Document document = api::ReadForeignDocument(text.substr(at, end - at));
      EXPECT_TRUE(document.problems.empty()) << text;
      documents.push_back(document.job.ToJson());
      at = end + 4;
    }
    return documents;
  }
  std::string Refusal(const std::string& code = "",
                      const std::vector<std::string>& overrides = {}) const {
    const auto rendered = RenderJob({At("job/job.yaml"), code, overrides});
    return rendered.ok() ? "" : rendered.error().message;
  }

  // kJob with another metadata.
  static std::string ReplaceMetadata(const std::string& metadata) {
    std::string job = kJob;
    const size_t begin = job.find("metadata:");
    return job.replace(begin, job.find("spec:") - begin, metadata);
  }

  static constexpr char kJob[] = R"yaml(apiVersion: parallelrun.dev/v1alpha1
kind: ParallelRunJob
metadata: {name: digits, namespace: team}
spec:
  entryScript: score.py
  arguments: ["y", "010", "1e3", "$(output)", "two words", "", ünï]
  environment: {image: images.example/digits:1}
  volumes: [{name: data, nfs: {server: s, path: /x}}]
  inputs: [{name: images, files: {volume: data, path: in, pattern: "**/*.png"}, partitionFormat: }]
  output: {volume: data, path: out}
  allowedFailedPercent: 12.5
)yaml";
  const TempFolder temp_;
  const fs::path root_ = fs::canonical(temp_.path());
};

TEST_F(Render, PutsTheCodeIntoAConfigMap) {
  const std::vector<json> documents = Documents();
  ASSERT_EQ(documents.size(), 2U);
  const json& map = documents[0];
  EXPECT_EQ(map["kind"], "ConfigMap");
  EXPECT_EQ(map["immutable"], true);
  EXPECT_EQ(map["metadata"]["namespace"], "team");
  // The job file is no part of the code: a new image must not change the code's name.
  EXPECT_EQ(map["data"], json({{"score.py", "def run(batch):\n    return batch\n"}}));
  const std::string name = map["metadata"]["name"];
  EXPECT_THAT(name, ::testing::StartsWith("digits-code-"));
  json expected = api::ReadDocument(kJob).job.ToJson();
  expected["spec"]["inputs"][0].erase("partitionFormat");
  expected["spec"]["code"] = {{"configMap", {{"name", name}}}};
  EXPECT_EQ(documents[1], expected);
}

TEST_F(Render, LeavesOutWhatTheClusterWrote) {
  const json expected = Documents();
  Write("job/job.yaml", ReplaceMetadata(R"yaml(status: {phase: Failed}
metadata:
  name: digits
  namespace: team
  uid: 2d6b6a4e-52c5-4a4b-9c1f-6a0d3f8f2a11
  resourceVersion: "4711"
  generation: 3
  creationTimestamp: "2026-01-02T03:04:05Z"
  deletionTimestamp: "2026-01-02T03:04:06Z"
  deletionGracePeriodSeconds: 0
  managedFields: [{manager: kubectl, operation: Update}]
  selfLink: /apis/x
  annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}
)yaml"));
  EXPECT_EQ(json(Documents()), expected);

  Write("job/job.yaml", ReplaceMetadata(R"yaml(metadata:
  name: digits
  namespace: team
  labels: {team: vision}
  finalizers: [example.com/keep]
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"kind": "ParallelRunJob"}'
    example.com/note: kept
  ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: nightly, uid: u}]
)yaml"));
  const json metadata = Documents()[1]["metadata"];
  EXPECT_EQ(metadata["labels"], json({{"team", "vision"}}));
  EXPECT_EQ(metadata["annotations"], json({{"example.com/note", "kept"}}));
  EXPECT_EQ(metadata["finalizers"], json({"example.com/keep"}));
  EXPECT_EQ(metadata["ownerReferences"][0]["name"], "nightly");
  EXPECT_THAT(RenderJob({At("job/job.yaml"), "", {}})->notes,
              ::testing::Contains(HasSubstr("metadata.ownerReferences")));
}

TEST_F(Render, NamesTheCodeAfterItsContent) {
  const std::string first = RenderJob({At("job/job.yaml"), "", {}})->text;
  Write("job/.git/HEAD", "x");
  Write("job/__pycache__/score.pyc", "x");
  Write("job/logs/user.txt", "x");
  EXPECT_EQ(RenderJob({At("job/job.yaml"), "", {}})->text, first);
  EXPECT_EQ(Documents()[0]["metadata"]["name"],
            Documents("", {"spec.environment.image=other"})[0]["metadata"]["name"]);
  Write("job/score.py", "def run(batch): return []\n");
  EXPECT_NE(RenderJob({At("job/job.yaml"), "", {}})->text, first);
}

TEST_F(Render, LeavesOtherCodeAlone) {
  const std::vector<json> documents = Documents("", {"spec.code.image.path=/app"});
  ASSERT_EQ(documents.size(), 1U);
  EXPECT_EQ(documents[0]["spec"]["code"], json({{"image", {{"path", "/app"}}}}));
  Write("other/score.py", "def run(batch): return batch\n");
  EXPECT_EQ(Documents(At("other"), {"spec.code.image.path=/app"})[0]["data"].size(), 1U);
  EXPECT_EQ(Documents("", {"spec.code.path=../other"})[0]["data"].size(), 1U);
}

TEST_F(Render, AFolderBecomesAnArchiveThatTheAgentUnpacks) {
  const std::string deep = std::string(90, 'a') + "/" + std::string(90, 'b');
  Write("job/lib/__init__.py", "");
  Write("job/lib/deep/" + deep + ".py", "x = 1\n");
  Write("job/tool", "#!/bin/sh\n");
  fs::permissions(root_ / "job/tool", fs::perms::owner_all);
  fs::create_symlink("lib/__init__.py", root_ / "job/link.py");
  std::vector<std::string> notes;
  const auto files = CollectCode({At("job"), "", {At("job/job.yaml")}}, notes);
  ASSERT_TRUE(files.ok()) << files.error().message;
  const auto packed = PackCode(*files);
  ASSERT_TRUE(packed.ok()) << packed.error().message;
  ASSERT_EQ(packed->size(), 1U);
  EXPECT_EQ(PackCode(*files)->at("code.tar.gz"), packed->at("code.tar.gz"));
  Write("code.tar.gz", packed->at("code.tar.gz"));
  fs::create_directory(root_ / "unpacked");
  const Status unpacked = agent::UnpackCode(At("code.tar.gz"), At("unpacked"));
  ASSERT_TRUE(unpacked.ok()) << unpacked.error().message;
  const auto again = CollectCode({At("unpacked"), "", {}}, notes);
  ASSERT_EQ(again->size(), files->size());
  for (size_t i = 0; i < files->size(); ++i) {
    EXPECT_EQ((*again)[i].path, (*files)[i].path);
    EXPECT_EQ((*again)[i].content, (*files)[i].content);
    EXPECT_EQ((*again)[i].executable, (*files)[i].executable) << (*files)[i].path;
  }
}

TEST_F(Render, SaysWhatDoesNotFit) {
  EXPECT_THAT(Refusal("no-such-folder"), HasSubstr("is not there"));
  EXPECT_THAT(Refusal("", {"spec.entryScript=other.py"}), HasSubstr("other.py is not in the code"));
  EXPECT_THAT(Refusal("", {"spec.environment.image="}), HasSubstr("spec.environment.image"));
  EXPECT_THAT(Refusal("", {"spec.volumes[0].nfs=", "spec.volumes[0].hostPath.path=./data"}),
              AllOf(HasSubstr("relative to the job file"), HasSubstr("persistentVolumeClaim")));
  fs::create_symlink("/etc/hostname", root_ / "job/away");
  EXPECT_THAT(Refusal(), HasSubstr("away is a link to /etc/hostname"));
  fs::remove(root_ / "job/away");
  Write("job/" + std::string(101, 'n'), "");
  EXPECT_THAT(Refusal(), Not(HasSubstr("too long")));  // a key may have 253 characters
  fs::create_directory(root_ / "job/lib");
  Write("job/lib/x.py", "");
  EXPECT_THAT(Refusal(), HasSubstr("too long for an archive"));
  fs::remove(root_ / "job" / std::string(101, 'n'));

  std::string noise;
  uint64_t state = 1;
  for (int i = 0; i < 3 << 18; ++i) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    noise += static_cast<char>(state >> 56);
  }
  Write("job/model.bin", noise);
  EXPECT_EQ(Refusal(), "");
  Write("job/lib/more.bin", noise.substr(0, 400000));
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("a ConfigMap holds 1 MiB"),
                               HasSubstr("model.bin (768 KiB), lib/more.bin (391 KiB)"),
                               HasSubstr("side input")));
}

TEST(BlockYaml, IsReadBackUnchanged) {
  const json texts = {"plain",   "y",      "No",     "null",    "1e3",   "0x1F",       "2001-01-01",
                      "a: b",    "- a",    "a #b",   "",        " a",    "a ",         "a\nb",
                      "a\nb\n",  "a\n\n",  "\na",    "a\n \nb", "\ta\n", "a\r\nb",     "tab\there",
                      "\x7f",    "\u0085", "\u2028", "\ufeffx", "😀 ü",   "\"\\",       "{}",
                      "@x",      "%x",     "&a",     "*a",      "!a",    "a\n  b\n",   "|",
                      "a\tb\nc", "=",      "<<",     "~",       ".inf",  "a\n---\nb\n"};
  for (const json& text : texts) {
    const json value = {{"k", text},
                        {"list", {text, {{"a", text}, {"b", {1, true, 2.5}}}}},
                        {text.get<std::string>() + "x", {{"empty", json::object()}}},
                        {"none", json::array()}};
    const std::string yaml = api::BlockYaml(api::JsonDocument(value).job);
    const api::Document document = api::ReadForeignDocument(yaml);
    ASSERT_TRUE(document.problems.empty()) << yaml;
    EXPECT_EQ(document.job.ToJson(), value) << yaml;
  }
}

}  // namespace
}  // namespace parallelrun::cli
