#include "cli/run/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "cli/run/choose_python.h"
#include "cli/run/code_root.h"

namespace parallelrun::cli {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PreflightTest : public testing::Test {
 protected:
  PreflightTest() {
    std::string name = "/tmp/preflight_test-XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  ~PreflightTest() override { fs::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& text = "12345") {
    const fs::path path = fs::path(folder_) / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path;
  }
  std::string At(const std::string& name) { return folder_ + "/" + name; }

  plan::PlanInput Input(const std::string& name, const std::string& pattern = "") {
    plan::PlanInput input;
    input.name = "images";
    input.root = At(name);
    input.pattern = pattern;
    return input;
  }

  LocalJob Job() {
    LocalJob job;
    job.job.spec.output.to.volume = job.job.spec.logs.to.volume = job.job.spec.state.in.volume =
        "out";
    job.layout.output_folder = At("out/output");
    job.layout.output_path = At("out/output/rows.txt");
    job.layout.log_folder = At("out/logs");
    job.layout.state_folder = At("out/state");
    return job;
  }

  std::string Root(const std::string& script, const std::string& code = "",
                   const std::string& home = "") {
    const Result<CodeRoot> root = FindCodeRoot(At(script), code, home);
    if (!root.ok()) return root.error().message;
    return fs::path(root->folder).lexically_relative(folder_).string() + " | " + root->script;
  }

  std::string folder_;
};

TEST_F(PreflightTest, WhatTheInputHolds) {
  File("in/a.png");
  File("in/deep/b.png");
  File("in/notes.txt");
  File("in/.hidden/c.png");
  InputSize size;
  EXPECT_EQ(CheckInput(Input("in", "**/*.png"), size), "");
  EXPECT_EQ(size.files, 2U);
  EXPECT_EQ(size.bytes, 10U);
  EXPECT_FALSE(size.more);
  EXPECT_EQ(CheckInput(Input("in/a.png"), size), "");
  EXPECT_EQ(size.files, 3U);
}

TEST_F(PreflightTest, AnInputThatIsNotThereOrHoldsNothing) {
  InputSize size;
  EXPECT_THAT(CheckInput(Input("in"), size), HasSubstr(At("in") + " does not exist"));
  File("in/.hidden");
  EXPECT_THAT(CheckInput(Input("in"), size), HasSubstr("no file below " + At("in")));
  File("in/old/a.txt");
  plan::PlanInput excluded = Input("in");
  excluded.exclude = {"old"};
  EXPECT_THAT(CheckInput(excluded, size), HasSubstr("no file below"));
  EXPECT_THAT(CheckInput(Input("in", "*.png"), size), HasSubstr("no file matches pattern *.png"));
  EXPECT_EQ(CheckInput(Input("in"), size), "");
}

TEST_F(PreflightTest, AnInputThatMayBeEmpty) {
  InputSize size;
  plan::PlanInput input = Input("in");
  input.allow_empty = api::AllowEmpty::kExisting;
  EXPECT_THAT(CheckInput(input, size), HasSubstr("does not exist"));
  File("in/.hidden");
  EXPECT_EQ(CheckInput(input, size), "");
  input.pattern = "*.png";
  EXPECT_THAT(CheckInput(input, size), HasSubstr("no file matches"));
  input.allow_empty = api::AllowEmpty::kMissing;
  EXPECT_EQ(CheckInput(input, size), "");
  input = Input("none");
  input.allow_empty = api::AllowEmpty::kMissing;
  EXPECT_EQ(CheckInput(input, size), "");
}

TEST_F(PreflightTest, OfALargeInputOnlyTheBeginningIsLookedAt) {
  for (int i = 0; i < 1001; ++i) File("in/" + std::to_string(i), "");
  InputSize size;
  EXPECT_EQ(CheckInput(Input("in", "*.png"), size), "") << "one may be behind what was looked at";
  EXPECT_EQ(CheckInput(Input("in"), size), "");
  EXPECT_TRUE(size.more);
  EXPECT_THAT(Facts(Job(), {}, size), HasSubstr("at least 1000 input files"));
}

TEST_F(PreflightTest, TheOutputIsFreeAndMayBeWritten) {
  RunRequest request;
  EXPECT_THAT(CheckOutput(Job(), request), IsEmpty());
  EXPECT_FALSE(fs::exists(At("out"))) << "nothing is made";
  File("out/output/rows.txt");
  EXPECT_THAT(CheckOutput(Job(), request),
              ElementsAre(HasSubstr("output: " + At("out/output/rows.txt") + " exists")));
  request.overwrite = true;
  EXPECT_THAT(CheckOutput(Job(), request), IsEmpty());
}

TEST_F(PreflightTest, AFileInTheWayOfTheOutputIsToldOnce) {
  File("out");
  RunRequest request;
  EXPECT_THAT(CheckOutput(Job(), request),
              ElementsAre(HasSubstr("choose another folder with --volume out=FOLDER")));
  request.quick.emplace();
  EXPECT_THAT(CheckOutput(Job(), request), ElementsAre(HasSubstr("with --output FOLDER")));
}

TEST_F(PreflightTest, AnOutputThatMayNotBeWritten) {
  EXPECT_THAT(
      [] {
        LocalJob job;
        job.layout.output_folder = job.layout.log_folder = job.layout.state_folder = "/proc/1/x";
        return CheckOutput(job, {});
      }(),
      ElementsAre(HasSubstr("/proc/1 cannot be written: ")));
}

TEST(PreflightFactsTest, AreOneLine) {
  LocalJob job;
  job.python_why = "of the active environment (VIRTUAL_ENV)";
  EXPECT_EQ(Facts(job, {"3.11.2", "/v/bin/python3", {}}, {1, 999, false}),
            "Python 3.11.2 (/v/bin/python3, of the active environment (VIRTUAL_ENV)); "
            "1 input file, 999 bytes");
  EXPECT_EQ(Facts({}, {}, {12, 3'456'000, false}), "12 input files, 3.5 MB");
  EXPECT_EQ(Facts({}, {}, {}), "");
  EXPECT_EQ(ListOf({"python: a", "output: b"}),
            "nothing was started; fix it and run again:\n  python: a\n  output: b");
}

TEST(PythonReportTest, IsToldApartFromWhatElseIsPrinted) {
  using std::string_literals::operator""s;
  const std::string mark = "\0parallelrun-preflight\0"s;
  const std::string answer = mark + "3.8.1\0/p\0script\0s.py:1: no\x1b[1m"s + mark;
  for (const std::string& printed :
       {answer, "Welcome\n" + answer, "2.7 is no longer supported\n" + answer + "bye\n",
        "zero \0 byte"s + answer}) {
    const std::optional<PythonReport> report = ReadPythonReport(printed);
    ASSERT_TRUE(report) << printed;
    EXPECT_EQ(report->version, "3.8.1");
    EXPECT_EQ(report->program, "/p");
    EXPECT_THAT(report->problems, ElementsAre(PythonProblem{"script", "s.py:1: no\\x1b[1m"}));
  }
  EXPECT_TRUE(ReadPythonReport(mark + "3.8.1\0/p"s + mark)->problems.empty());
  for (const std::string& printed :
       {""s, "3.8.1\0/p\0"s, mark, mark + "3.8.1\0/p\0"s, "Welcome\n"s + mark + "3.8.1"s + mark}) {
    EXPECT_FALSE(ReadPythonReport(printed)) << printed;
  }
}

TEST_F(PreflightTest, TheFlagThenTheJobThenTheCallersThenTheActiveEnvironment) {
  std::map<std::string, std::string> variables;
  const auto choose = [&](const std::string& flag, const std::string& job) {
    api::JobSpec spec;
    if (!job.empty()) spec.environment.python = job;
    return ChoosePython(flag, spec, [&](const char* name) {
      return variables.contains(name) ? variables[name].c_str() : nullptr;
    });
  };
  EXPECT_EQ(choose("", "").program, "python3");
  variables = {{"VIRTUAL_ENV", At("venv")}, {"CONDA_PREFIX", At("conda")}};
  EXPECT_EQ(choose("", "").program, "python3") << "neither has a Python";
  fs::permissions(File("conda/bin/python3"), fs::perms::owner_all);
  EXPECT_EQ(choose("", "").program, At("conda/bin/python3"));
  EXPECT_EQ(choose("", "").why, "of the active environment (CONDA_PREFIX)");
  fs::permissions(File("venv/bin/python3"), fs::perms::owner_all);
  EXPECT_EQ(choose("", "").program, At("venv/bin/python3"));
  variables["PARALLELRUN_PYTHON"] = At("kernel/bin/python3.12");
  EXPECT_EQ(choose("", "").program, At("venv/bin/python3")) << "it is not there any more";
  fs::permissions(File("kernel/bin/python3.12"), fs::perms::owner_all);
  EXPECT_EQ(choose("", "").program, At("kernel/bin/python3.12"));
  EXPECT_EQ(choose("", "").why, "of the environment that this command was called from");
  EXPECT_EQ(choose("", "/opt/python3").program, "/opt/python3");
  EXPECT_EQ(choose("python3.12", "/opt/python3").program, "python3.12");
  EXPECT_EQ(choose("./p/../python3", "").program, fs::current_path().string() + "/python3");
}

TEST_F(PreflightTest, TheCodeOfAScriptIsItsProject) {
  File("p/src/deep/s.py");
  EXPECT_EQ(Root("p/src/deep/s.py"), "p/src/deep | s.py") << "no marker: its own folder";
  fs::create_directories(At("p/.git"));
  EXPECT_EQ(Root("p/src/deep/s.py"), "p | src/deep/s.py");
  EXPECT_EQ(Root("p/src/deep/s.py", "", At("p")), "p/src/deep | s.py") << "the home folder is none";
  File("p/src/job.yaml", "apiVersion: parallelrun.dev/v1alpha1\nkind: ParallelRunJob\n");
  EXPECT_EQ(Root("p/src/deep/s.py"), "p/src | deep/s.py") << "the nearest";
  File("p/src/deep/other.yaml", "kind: Deployment\n");
  EXPECT_EQ(Root("p/src/deep/s.py"), "p/src | deep/s.py");
  File("p/src/deep/pyproject.toml");
  EXPECT_EQ(Root("p/src/deep/s.py"), "p/src/deep | s.py");
}

TEST_F(PreflightTest, AMarkerInAFolderForEverybodyIsNobodysProject) {
  File("shared/pyproject.toml");
  File("shared/mine/s.py");
  EXPECT_EQ(Root("shared/mine/s.py"), "shared | mine/s.py");
  fs::permissions(At("shared"), fs::perms::sticky_bit, fs::perm_options::add);
  EXPECT_EQ(Root("shared/mine/s.py"), "shared/mine | s.py");
}

TEST_F(PreflightTest, ACodeFolderThatIsNamedHoldsTheScript) {
  File("p/src/s.py");
  EXPECT_EQ(Root("p/src/s.py", At("p")), "p | src/s.py");
  EXPECT_THAT(Root("p/src/s.py", At("other")), HasSubstr("does not lie below the code folder"));
}

}  // namespace
}  // namespace parallelrun::cli
