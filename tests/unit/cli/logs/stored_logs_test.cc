#include "cli/logs/stored_logs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/small_file.h"
#include "coordinator/log_tree/log_segment.h"
#include "tests/support/disk_files.h"
#include "tests/support/memory_store.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::cli {
namespace {

using ::testing::HasSubstr;

constexpr char kRoot[] = "memory://bucket/logs";
constexpr char kOlder[] = "20261123T215747Z-ffffffffffffffff";
constexpr char kNewer[] = "20261124T000000Z-0000000000000001";

class StoredLogsTest : public ::testing::Test {
 protected:
  void Put(const std::string& name, const std::string& text) {
    objects_.Put(std::string(kRoot) + "/" + name, text);
  }
  std::string Newest(const std::string& root) {
    const Result<std::string> run = NewestStoredRun(*objects_.Open(root));
    return run.ok() ? "run " + *run : run.error().message;
  }
  // What was brought, by its name in the folder.
  std::string Brought(const std::string& name) const {
    const Result<std::string> text = ReadSmallFile(folder_.path() + "/" + name, 10 << 20);
    return text.ok() ? *text : "(none)";
  }
  Status Bring(const std::string& run, const LogParts& parts) {
    const Result<coordinator::LogFolder> folder =
        coordinator::LogFolder::Open(DiskFiles(), folder_.path());
    EXPECT_TRUE(folder.ok());
    return BringLogs(*objects_.Open(kRoot), run, parts, *folder);
  }

  MemoryObjects objects_;
  const TempFolder folder_;
};

TEST_F(StoredLogsTest, TheNewestOfSeveralRunsIsTaken) {
  Put(std::string(kNewer) + "/readme.txt", "it still runs");
  Put(std::string(kOlder) + "/readme.txt", "r");
  Put(std::string(kOlder) + "/job_result.txt", "Succeeded");
  Put("20261125T000000Z-000000000000000g/job_result.txt", "no run has such a name");
  Put("20261125T000000Z/job_result.txt", "nor such a one");
  Put("readme.txt", "somebody's own");
  EXPECT_EQ(Newest(kRoot), "run " + std::string(kNewer) + "/");
  EXPECT_EQ(Newest(std::string(kRoot) + "/" + kOlder), "run ");
}

TEST_F(StoredLogsTest, WhereNoRunIsTheMessageSaysWhatToGive) {
  Put("other/file.txt", "x");
  EXPECT_THAT(Newest(kRoot), HasSubstr("there are no logs of a run in memory://bucket/logs"));
  EXPECT_THAT(Newest(kRoot), HasSubstr("logs.store"));
}

TEST_F(StoredLogsTest, PartsAreBroughtAndNothingElse) {
  const std::string run = std::string(kNewer) + "/";
  const std::string large((size_t{2} << 20) + 3, 'x');
  Put(run + "job_result.txt", "Failed\n");
  Put(run + "job_error.txt", "e\n");
  Put(run + "user/error/0/process000.txt", large);
  Put(run + "user/error.txt", "e\n");
  Put(run + "user/stdout/0/process000.stdout.txt", "o\n");
  Put(std::string(kOlder) + "/user/error/0/process000.txt", "older");
  ASSERT_TRUE(Bring(run, {"job_result.txt", "failures.jsonl", "user/error/"}).ok());
  EXPECT_EQ(Brought("job_result.txt"), "Failed\n");
  EXPECT_TRUE(Brought("user/error/0/process000.txt") == large);
  for (const char* name : {"job_error.txt", "user/error.txt", "failures.jsonl",
                           "user/stdout/0/process000.stdout.txt"}) {
    EXPECT_EQ(Brought(name), "(none)") << name;
  }
}

// Of a run that goes on, and of one whose logs are much: later than the files that are there.
TEST_F(StoredLogsTest, SegmentsAreJoinedToTheirFiles) {
  using coordinator::EncodeLogRecord;
  const std::string run = std::string(kNewer) + "/";
  const std::string log = "user/stdout/0/process000.stdout.txt";
  const std::string error = "user/error/0/process000.txt";
  Put(run + "readme.txt", "r");
  Put(run + log, "one\n");
  Put(run + "segments/0/000001-00000002",
      EncodeLogRecord({log, 4, false, "two\n"}) + EncodeLogRecord({error, 0, false, "old"}));
  Put(run + "segments/0/000002-00000001", EncodeLogRecord({log, 4, false, "two\n"}) +
                                              EncodeLogRecord({log, 8, false, "three\n"}) +
                                              EncodeLogRecord({error, 0, true, "e"}) + "log 5 to");
  Put(run + "segments/1/000001-00000001",
      EncodeLogRecord({"user/stdout/1/process000.stdout.txt", 0, false, "of node 1"}));
  Put(run + "segments/1/000001-00000002", EncodeLogRecord({"user/../../out", 0, false, "x"}));
  ASSERT_TRUE(Bring(run, {"user/stdout/0/", "user/error/"}).ok());
  EXPECT_EQ(Brought(log), "one\ntwo\nthree\n");
  EXPECT_EQ(Brought(error), "e");
  EXPECT_EQ(Brought("user/stdout/1/process000.stdout.txt"), "(none)");
  EXPECT_FALSE(Bring(run, {"user/"}).ok()) << "a name leads out of the folder";
}

}  // namespace
}  // namespace parallelrun::cli
