#include "coordinator/core/gates.h"

#include <gtest/gtest.h>

#include "tests/unit/coordinator/core_harness.h"

namespace parallelrun::coordinator {
namespace {

// A node that may get what is planned; each test shuts one gate.
class GatesTest : public CoordinatorHarness, public ::testing::Test {
 protected:
  void SetUp() override {
    Plan(4);
    node = Join(0);
    EXPECT_EQ(MayGet(), Gate::kOpen);
  }
  // Asked now, of the node or another one.
  Gate MayGet(uint32_t index = 0) const { return core->gates().MayGet(index, node, now(), now()); }

  job::Incarnation node;
};

TEST_F(GatesTest, AVerdictIsTheEndDurableOrNot) {
  core->Cancel(now());
  EXPECT_EQ(MayGet(), Gate::kJobOver);
  Sync();
  EXPECT_EQ(MayGet(), Gate::kJobOver);
}

TEST_F(GatesTest, AJobThatClosesHasNothingLeft) {
  job::ExchangeRequest owes = Request(node);
  owes.events.push_back({0, job::ProcessEvent::Kind::kOwes, "", ""});
  Send(0, owes);
  Sync();
  for (int i = 0; i < 4; ++i) Report(0, node, Lease(0, node));
  EXPECT_EQ(core->phase(), Coordinator::Phase::kClosing);
  EXPECT_EQ(MayGet(), Gate::kJobCloses);
}

TEST_F(GatesTest, ADrainStandsForTheWholeJob) {
  core->Drain(now());
  EXPECT_EQ(MayGet(), Gate::kDrains);
}

TEST_F(GatesTest, AFullDiskOpensAgain) {
  core->Pause("the disk is full");
  EXPECT_EQ(MayGet(), Gate::kDiskFull);
  core->Unpause();
  EXPECT_EQ(MayGet(), Gate::kOpen);
}

TEST_F(GatesTest, WithoutALookAMomentAgoTheEpochIsUnsure) {
  Pass(limits.look);
  EXPECT_EQ(MayGet(), Gate::kEpochUnsure);
  core->OnLooked(now(), {}, now());
  EXPECT_EQ(MayGet(), Gate::kOpen);
  core->OnLooked(now(), Error{Code::kStale, "epoch 2 is there"}, now());
  EXPECT_EQ(MayGet(), Gate::kSuperseded);
}

TEST_F(GatesTest, ANodeThatMayBeAtWorkSinceAnEarlierEpochIsHeardFirst) {
  Start();
  node = Join(0);
  EXPECT_EQ(MayGet(), Gate::kNotAllHeard);
  Send(0, Request(node));
  EXPECT_EQ(MayGet(), Gate::kOpen);
}

TEST_F(GatesTest, ANodeMayBeOneTooMany) {
  core->SetNodes(0, now());
  EXPECT_EQ(MayGet(), Gate::kNotExpected);
}

TEST_F(GatesTest, OnlyTheIncarnationThatIsInForceGetsAnything) {
  EXPECT_EQ(MayGet(7), Gate::kNotInForce) << "it never came";
  Join(0);
  EXPECT_EQ(MayGet(), Gate::kNotInForce) << "it has registered again";
}

TEST_F(GatesTest, WhatStandsForTheWholeJobIsNamedFirst) {
  core->Pause("the disk is full");
  core->SetNodes(0, now());
  EXPECT_EQ(MayGet(), Gate::kDiskFull);
}

}  // namespace
}  // namespace parallelrun::coordinator
