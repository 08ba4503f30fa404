#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/doctor/findings.h"

namespace parallelrun::cli {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kGigabyte = 1'000'000'000;

MachineFacts Sound() {
  MachineFacts facts;
  facts.release = "0.1.0";
  facts.python = "/usr/bin/python3";
  facts.python_version = "3.11.2";
  facts.cores = 4;
  facts.memory_bytes = 16 * kGigabyte;
  facts.shared_bytes = 8 * kGigabyte;
  facts.open_files = 1024;
  facts.open_files_most = 4096;
  facts.temporary = {"/tmp", "", 50 * kGigabyte, true};
  facts.work = {"/home/ana", "", 50 * kGigabyte, true};
  return facts;
}

Finding Of(const MachineFacts& facts, const std::string& subject) {
  for (const Finding& finding : FindingsOf(facts)) {
    if (finding.subject == subject) return finding;
  }
  ADD_FAILURE() << "nothing is said of " << subject;
  return {};
}

TEST(Doctor, AllIsWell) {
  for (const Finding& finding : FindingsOf(Sound())) {
    EXPECT_EQ(finding.level, Level::kOk) << finding.subject;
    EXPECT_EQ(finding.to_do, "") << finding.subject;
  }
  const std::string text = FindingsText(FindingsOf(Sound()));
  EXPECT_THAT(text, HasSubstr("ok    python           3.11.2 (/usr/bin/python3)\n"));
  EXPECT_THAT(text, HasSubstr("\neverything is as it should be\n"));
}

TEST(Doctor, EachThingThatIsWrongIsToldWithWhatToDo) {
  const auto expect = [](Level level, const std::string& subject, const std::string& to_do,
                         auto change) {
    MachineFacts facts = Sound();
    change(facts);
    const Finding finding = Of(facts, subject);
    EXPECT_EQ(finding.level, level) << subject << ": " << finding.text;
    EXPECT_THAT(finding.to_do, HasSubstr(to_do)) << subject;
    size_t others = 0;
    for (const Finding& one : FindingsOf(facts)) others += one.level != Level::kOk ? 1 : 0;
    EXPECT_EQ(others, 1u) << subject;
  };
  expect(Level::kFail, "programs", "install", [](auto& f) { f.programs = "x is missing"; });
  expect(Level::kFail, "python", "--python", [](auto& f) { f.python_problem = "no such file"; });
  expect(Level::kWarn, "packages", "JSON lines", [](auto& f) { f.python_lacks = "pandas"; });
  expect(Level::kFail, "temporary files", "TMPDIR", [](auto& f) { f.temporary.problem = "no"; });
  expect(Level::kWarn, "temporary files", "make room",
         [](auto& f) { f.temporary.free_bytes = kGigabyte - 1; });
  expect(Level::kFail, "this folder", "make room", [](auto& f) { f.work.free_bytes = 9'999'999; });
  expect(Level::kFail, "this folder", "--output", [](auto& f) { f.work.locks = false; });
  expect(Level::kWarn, "cores", "--processes 1", [](auto& f) { f.core_quota = 1.5; });
  expect(Level::kWarn, "memory", "fewer processes", [](auto& f) { f.memory_bytes = kGigabyte; });
  expect(Level::kWarn, "memory", "fewer processes", [](auto& f) {
    f.memory_limit = 4 * kGigabyte;
    f.memory_used = 3 * kGigabyte;
  });
  expect(Level::kWarn, "/dev/shm", "tmpfs", [](auto& f) { f.shared_bytes = std::nullopt; });
  expect(Level::kWarn, "/dev/shm", "--shm-size", [](auto& f) { f.shared_bytes = 67'108'864; });
  expect(Level::kWarn, "open files", "ulimit -n 4096", [](auto& f) { f.open_files = 256; });
  expect(Level::kWarn, "open files", "whoever runs", [](auto& f) {
    f.open_files = 256;
    f.open_files_most = 256;
  });
  expect(Level::kWarn, "processes", "ulimit -u", [](auto& f) { f.processes = 100; });
  expect(Level::kFail, "loopback", "interface lo", [](auto& f) { f.loopback_problem = "no"; });
  expect(Level::kWarn, "other runs", "ps, attach and stop",
         [](auto& f) { f.control_problem = "others may enter"; });
}

TEST(Doctor, WhatIsLargerThanALimitIsNoLimit) {
  MachineFacts facts = Sound();
  facts.core_quota = 8;
  facts.memory_limit = 64 * kGigabyte;
  EXPECT_EQ(Of(facts, "cores").level, Level::kOk);
  EXPECT_EQ(Of(facts, "memory").level, Level::kOk);
}

TEST(Doctor, CountsAndJson) {
  MachineFacts facts = Sound();
  facts.programs = "x";
  facts.open_files = 1;
  facts.python = "a\nb";
  const std::vector<Finding> findings = FindingsOf(facts);
  EXPECT_THAT(FindingsText(findings), HasSubstr("\n1 to fix, 1 to know\n"));
  EXPECT_THAT(FindingsText(findings), HasSubstr("a\\nb"));
  const auto parsed = nlohmann::json::parse(FindingsJson(findings));
  EXPECT_EQ(parsed["findings"][0]["level"], "fail");
  EXPECT_EQ(parsed["findings"].size(), findings.size());
}

}  // namespace
}  // namespace parallelrun::cli
