#include "job/gpu_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::job {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

// 2 GPUs, 4 processes: the example that the contract gives.
TEST(GpuSlots, AFreedIndexGoesToTheNextProcessThatStarts) {
  GpuSlots slots({"0", "1"});
  EXPECT_EQ(slots.count(), 2U);
  EXPECT_EQ(slots.Take(0, 1), "0");
  EXPECT_EQ(slots.Take(1, 1), "1");
  EXPECT_EQ(slots.Take(2, 1), std::nullopt);
  EXPECT_EQ(slots.Take(3, 1), std::nullopt);
  slots.Free(0);
  EXPECT_EQ(slots.Take(4, 1), "0");
  slots.Free(2);  // had none
  EXPECT_EQ(slots.Take(5, 1), std::nullopt);
  slots.Free(1);
  slots.Free(4);
  EXPECT_EQ(slots.Take(6, 1), "0");
  EXPECT_EQ(slots.Take(7, 1), "1");
}

TEST(GpuSlots, SharedDevicesAreFilledInTurn) {
  GpuSlots slots({"0", "1"});
  EXPECT_EQ(slots.Take(0, 2), "0");
  EXPECT_EQ(slots.Take(1, 2), "1");
  EXPECT_EQ(slots.Take(2, 2), "0");
  EXPECT_EQ(slots.Take(3, 2), "1");
  EXPECT_EQ(slots.Take(4, 2), std::nullopt);
  slots.Free(1);
  slots.Free(3);
  EXPECT_EQ(slots.Take(5, 2), "1");
  slots.Free(0);
  EXPECT_EQ(slots.Take(6, 2), "0");
  EXPECT_EQ(slots.Take(7, 2), "1");
  EXPECT_EQ(slots.Take(8, 2), std::nullopt);
  EXPECT_EQ(slots.count(), 2U) << "how many there are";
}

TEST(GpuSlots, ANodeWithoutAny) {
  GpuSlots slots({});
  EXPECT_EQ(slots.Take(0, 1), std::nullopt);
  slots.Free(0);
  EXPECT_EQ(slots.count(), 0U);
}

TEST(GpuDevices, WhatTheNodeHas) {
  EXPECT_EQ(GpuDevices(std::nullopt, std::nullopt, 0), std::nullopt);
  EXPECT_THAT(GpuDevices(std::nullopt, std::nullopt, 3), Optional(ElementsAre("0", "1", "2")));
}

TEST(GpuDevices, CudaVisibleDevicesIsHandedOutWordByWord) {
  EXPECT_THAT(GpuDevices("3,1", "all", 8), Optional(ElementsAre("3", "1")));
  EXPECT_THAT(GpuDevices("MIG-7a2b, GPU-11,GPU-11", std::nullopt, 0),
              Optional(ElementsAre("MIG-7a2b", "GPU-11")));
  EXPECT_THAT(GpuDevices("2,-1,0", std::nullopt, 8), Optional(ElementsAre("2")));
  for (const char* none : {"", "-1", "NoDevFiles"}) {
    EXPECT_THAT(GpuDevices(none, "GPU-1", 8), Optional(IsEmpty())) << none;
  }
}

TEST(GpuDevices, NvidiaVisibleDevicesGivesIdsOrACount) {
  EXPECT_THAT(GpuDevices(std::nullopt, "MIG-a,MIG-b", 1), Optional(ElementsAre("MIG-a", "MIG-b")));
  EXPECT_THAT(GpuDevices(std::nullopt, "4,7", 2), Optional(ElementsAre("0", "1")));
  EXPECT_THAT(GpuDevices(std::nullopt, "0:0,0:1", 1), Optional(ElementsAre("0", "1")));
  EXPECT_EQ(GpuDevices(std::nullopt, "0", 0), std::nullopt);  // an image's leftover, and no GPU
  for (const char* word : {"all", "void", "none", "", "/var/run/nvidia-container-devices"}) {
    EXPECT_THAT(GpuDevices(std::nullopt, word, 2), Optional(ElementsAre("0", "1"))) << word;
    EXPECT_EQ(GpuDevices(std::nullopt, word, 0), std::nullopt) << word;
  }
}

}  // namespace
}  // namespace parallelrun::job
