#include "coordinator/start/newest_pod.h"

#include <gtest/gtest.h>

#include "job/pod_name.h"
#include "tests/support/temp_folder.h"

namespace parallelrun::coordinator {
namespace {

TEST(PodName, ItsNumberIsTheLastPart) {
  EXPECT_EQ(job::PodNumber("digits-1a2b3-coordinator-4", "coordinator"), 4U);
  EXPECT_EQ(job::PodNumber("digits-1a2b3-node-2-17", "node-2"), 17U);
  EXPECT_EQ(job::PodNumber("node-2-node-2-5", "node-2"), 5U);
  for (const char* host :
       {"", "laptop", "digits-1a2b3-node-3-17", "digits-1a2b3-node-2-", "digits-1a2b3-node-2-x",
        "digits-1a2b3-node-2-5.example", "digits-1a2b3-node-2-99999999999999999999"}) {
    EXPECT_EQ(job::PodNumber(host, "node-2"), 0U) << host;
  }
}

TEST(NewestPod, AnOlderOneMayNotComeBack) {
  const TempFolder t;
  const std::unique_ptr<Files> files = MakeSystemFiles();
  const std::unique_ptr<ledger::StateNotes> notes = ledger::MakeFolderNotes(*files, t.path());
  const auto enter = [&](const std::string& host, const std::string& uid = "u") {
    return EnterAsNewestPod(*notes, uid, host);
  };
  EXPECT_TRUE(enter("laptop").ok());
  EXPECT_FALSE(t.Exists("pod.json"));
  EXPECT_TRUE(enter("j-12345-coordinator-3").ok());
  EXPECT_TRUE(enter("j-12345-coordinator-3").ok());  // its container was started again
  EXPECT_TRUE(enter("j-12345-coordinator-7").ok());
  const Status old = enter("j-12345-coordinator-3");
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().code, Code::kStale);
  EXPECT_NE(old.error().message.find("pod 7"), std::string::npos);
  EXPECT_TRUE(enter("j-54321-coordinator-1", "another job").ok());
  t.Write("pod.json", "damaged");
  EXPECT_TRUE(enter("j-12345-coordinator-3").ok());
}

}  // namespace
}  // namespace parallelrun::coordinator
