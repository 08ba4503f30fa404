#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/run/local_job.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// Where a local run takes the code from that a job has on a volume.
class LocalCodeTest : public testing::Test {
 protected:
  // `models` is what is said of that volume.
  LocalJob Read(const std::string& models, const std::string& path = "code",
                const RunRequest& asked = {}) const {
    temp_.Write("job.yaml", R"(apiVersion: parallelrun.dev/v1alpha1
kind: ParallelRunJob
metadata: {name: job}
spec:
  entryScript: score.py
  code: {volume: models, path: )" +
                                path + R"(}
  volumes:
    - {name: data, hostPath: {path: data}}
    - {name: models, )" + models +
                                R"(}
  inputs: [{name: files, files: {volume: data, path: in}}]
  output: {volume: data, path: out}
)");
    RunRequest request = asked;
    request.job_file = temp_.path("job.yaml");
    const Result<LocalJob> job = ReadLocalJob(request);
    EXPECT_TRUE(job.ok()) << job.error().message;
    return job.ok() ? *job : LocalJob{};
  }
  std::string At(const std::string& name) const { return temp_.path(name); }

  void Write(const std::string& name) const { temp_.Write(name, "def run(b): return b\n"); }

  const TempFolder temp_{};
  const std::string here_ = "hostPath: {path: shared}";
  const std::string claim_ = "persistentVolumeClaim: {claimName: c}";
};

TEST_F(LocalCodeTest, OfAVolumeThatIsAFolderHere) {
  Write("score.py");  // the one beside the job file is not what the job names
  Write("shared/code/score.py");
  Write("shared/score.py");
  const LocalJob job = Read(here_);
  EXPECT_EQ(job.code_folder, At("shared/code"));
  EXPECT_TRUE(CheckCode(job).ok());
  EXPECT_TRUE(HasCodeHere(job));
  EXPECT_EQ(Read(here_, "./code/").code_folder, At("shared/code"));
  EXPECT_EQ(Read(here_, ".").code_folder, At("shared"));
  EXPECT_EQ(Read("hostPath: {path: " + At("shared") + "}").code_folder, At("shared/code"));
}

TEST_F(LocalCodeTest, OfAVolumeThatTheCommandMakesAFolder) {
  Write("other/code/score.py");
  RunRequest request;
  request.volumes = {"models=" + At("other")};
  for (const std::string& models : {claim_, here_}) {
    EXPECT_EQ(Read(models, "code", request).code_folder, At("other/code")) << models;
  }
  request.code = At("mine");
  const LocalJob job = Read(here_, "code", request);
  EXPECT_EQ(job.code_folder, At("mine"));
  EXPECT_EQ(job.code_not_on, "") << "the command line says where";
}

TEST_F(LocalCodeTest, BesideTheJobFileWhereTheVolumeIsNoFolderHere) {
  Write("score.py");
  const LocalJob job = Read(claim_);
  EXPECT_EQ(job.code_folder, temp_.path());
  EXPECT_TRUE(CheckCode(job).ok());
  EXPECT_FALSE(HasCodeHere(job)) << "nothing can be said of the job's own code";
}

TEST_F(LocalCodeTest, WhatIsNotFoundNamesTheVolume) {
  Write("shared/notes.txt");
  const Result<std::string> claim = CheckCode(Read(claim_));
  ASSERT_FALSE(claim.ok());
  EXPECT_THAT(claim.error().message,
              EndsWith("name the folder with --code (spec.code: volume \"models\" is not a folder "
                       "here: add --volume models=FOLDER)"));
  const Result<std::string> nowhere = CheckCode(Read(here_));
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().message,
              EndsWith("name the folder with --code (spec.code: " + At("shared/code") +
                       ", on the volume \"models\", is not there)"));
  Write("shared/code/other.py");
  const Result<std::string> no_script = CheckCode(Read(here_));
  ASSERT_FALSE(no_script.ok());
  EXPECT_THAT(no_script.error().message,
              HasSubstr("is not in the code folder " + At("shared/code") + " (there: other.py)"));
  EXPECT_THAT(no_script.error().message, EndsWith("name the folder with --code"));
}

}  // namespace
}  // namespace parallelrun::cli
