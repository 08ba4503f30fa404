#include "output/store/part_sender.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "tests/support/memory_write_store.h"

namespace parallelrun::output {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

TEST(PartSenderTest, PartsAreAsSmallAsTheStoreAndTheNumberAllow) {
  const store::WriteStore::Parts s3{5 * kMiB, 10000};
  EXPECT_EQ(PlanParts(0, s3).bytes, 16 * kMiB);
  EXPECT_EQ(PlanParts(0, s3).at_once, 4u);
  EXPECT_EQ(PlanParts(9'900 * 16 * kMiB, s3).bytes, 16 * kMiB);
  EXPECT_EQ(PlanParts(9'900 * 16 * kMiB + 1, s3).bytes, 17 * kMiB);
  const PartPlan large = PlanParts(uint64_t{5} << 40, s3);
  EXPECT_LE((uint64_t{5} << 40) / large.bytes, 9'900u);
  EXPECT_EQ(large.at_once, 1u);
  EXPECT_EQ(PlanParts(0, {32 * kMiB, 10000}).bytes, 32 * kMiB);
}

TEST(PartSenderTest, AllBytesComeInTheirOrderInPartsOfOneSize) {
  MemoryWriteStore store;
  const auto upload = store.Begin("a", {});
  std::string all;
  {
    PartSender sender(**upload, {10, 3}, 10000);
    for (int i = 0; i < 1000; ++i) {
      const std::string line = "line " + std::to_string(i) + "\n";
      all += line;
      ASSERT_TRUE(sender.Add(line).ok());
    }
    ASSERT_TRUE(sender.Finish().ok());
  }
  ASSERT_TRUE((*upload)->Complete(std::nullopt).ok());
  EXPECT_EQ(store.Find("a")->bytes, all);
}

TEST(PartSenderTest, AFailedPartEndsIt) {
  MemoryWriteStore store;
  const auto upload = store.Begin("a", {});
  store.SetFaults([](size_t, const std::string& what) {
    return what == "send" ? MemoryWriteStore::Fault::kRefused : MemoryWriteStore::Fault::kNone;
  });
  PartSender sender(**upload, {10, 2}, 10000);
  Status added;
  for (int i = 0; i < 1000 && added.ok(); ++i) added = sender.Add("0123456789");
  EXPECT_EQ(added.error().code, Code::kUnavailable);
  EXPECT_EQ(sender.Finish().error().code, Code::kUnavailable);
}

TEST(PartSenderTest, MorePartsThanTheStoreTakesAreAnError) {
  MemoryWriteStore store;
  const auto upload = store.Begin("a", {});
  PartSender sender(**upload, {1, 1}, 3);
  ASSERT_TRUE(sender.Add("123").ok());
  EXPECT_EQ(sender.Add("4").error().code, Code::kInvalid);
}

}  // namespace
}  // namespace parallelrun::output
