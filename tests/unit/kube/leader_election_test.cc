// The election's rules, with the time in the test's hands. The cases are client-go's:
// tools/leaderelection.
#include "kube/leader_election.h"

#include <gtest/gtest.h>

namespace parallelrun::kube {
namespace {

constexpr WallTime kWall{microseconds{1'700'000'000'123'456}};
Instant At(double s) { return Instant(Duration(static_cast<int64_t>(s * 1e6))); }

LeaseRecord Foreign(const std::string& renewed = "r1", int duration = 15) {
  LeaseRecord record;
  record.holder = "other";
  record.duration_seconds = duration;
  record.acquire_time = "long ago";
  record.renew_time = renewed;
  record.transitions = 3;
  record.resource_version = "7";
  return record;
}

// What the server makes of a write.
LeaseRecord Stored(LeaseRecord record, const char* version) {
  record.resource_version = version;
  return record;
}

TEST(KubeLeaderElection, NoObjectIsCreated) {
  ElectionCore core("me", {});
  core.Observed(std::nullopt, At(0));
  EXPECT_FALSE(core.exists());
  const auto wanted = core.Wanted(At(0), kWall);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->holder, "me");
  EXPECT_EQ(wanted->duration_seconds, 15);
  EXPECT_EQ(wanted->acquire_time, "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(wanted->transitions, 0);
  core.Written(Stored(*wanted, "8"), At(0));
  EXPECT_TRUE(core.Leading(At(0)));
}

TEST(KubeLeaderElection, AForeignHolderIsLeftAloneUntilItsRecordStoodStillForItsDuration) {
  ElectionCore core("me", {});
  core.Observed(Foreign("r1"), At(100));
  EXPECT_FALSE(core.Wanted(At(114.9), kWall));
  core.Observed(Foreign("r2"), At(114.9));  // renewed: counted from when that was seen
  EXPECT_FALSE(core.Wanted(At(129.8), kWall));
  core.Observed(Foreign("r2"), At(120));  // seen again, unchanged
  const auto wanted = core.Wanted(At(129.9), kWall);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->transitions, 4);
  EXPECT_EQ(wanted->resource_version, "7");
  EXPECT_EQ(wanted->acquire_time, wanted->renew_time);
}

TEST(KubeLeaderElection, TheHoldersOwnDurationCounts) {
  ElectionCore core("me", {});
  core.Observed(Foreign("r1", 60), At(0));
  EXPECT_FALSE(core.Wanted(At(59), kWall));
  EXPECT_TRUE(core.Wanted(At(60), kWall));
}

TEST(KubeLeaderElection, AnEmptyHolderIsFollowedAtOnce) {
  ElectionCore core("me", {});
  LeaseRecord free = Foreign();
  free.holder.clear();
  core.Observed(free, At(0));
  EXPECT_TRUE(core.Wanted(At(0), kWall));
}

TEST(KubeLeaderElection, RenewKeepsAcquireTimeAndTransitions) {
  ElectionCore core("me", {});
  core.Observed(std::nullopt, At(0));
  const LeaseRecord first = Stored(*core.Wanted(At(0), kWall), "8");
  core.Written(first, At(0));
  EXPECT_TRUE(core.CanUpdateBlindly());
  const auto renewed = core.Wanted(At(2), kWall + seconds(2));
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->acquire_time, first.acquire_time);
  EXPECT_NE(renewed->renew_time, first.renew_time);
  EXPECT_EQ(renewed->transitions, 0);
  EXPECT_EQ(renewed->resource_version, "8")
      << "the optimistic update carries the version last seen";
}

TEST(KubeLeaderElection, TheTermEndsAtTheRenewDeadlineCountedFromBeforeTheWrite) {
  ElectionCore core("me", {});
  core.Observed(std::nullopt, At(0));
  core.Written(Stored(*core.Wanted(At(1), kWall), "8"), At(1));
  EXPECT_EQ(core.Deadline(), At(11));
  EXPECT_TRUE(core.Leading(At(10.9)));
  EXPECT_FALSE(core.Leading(At(11)));
}

TEST(KubeLeaderElection, AnotherHolderInTheRecordEndsTheTerm) {
  ElectionCore core("me", {});
  core.Observed(std::nullopt, At(0));
  core.Written(Stored(*core.Wanted(At(0), kWall), "8"), At(0));
  core.Observed(Foreign(), At(1));
  EXPECT_FALSE(core.Leading(At(1)));
  EXPECT_FALSE(core.CanUpdateBlindly());
  EXPECT_FALSE(core.Wanted(At(1), kWall));
}

TEST(KubeLeaderElection, ReleaseEmptiesTheHolderForOneSecond) {
  ElectionCore core("me", {});
  EXPECT_FALSE(core.Released(kWall)) << "nothing to give up";
  core.Observed(std::nullopt, At(0));
  core.Written(Stored(*core.Wanted(At(0), kWall), "8"), At(0));
  const auto released = core.Released(kWall);
  ASSERT_TRUE(released);
  EXPECT_EQ(released->holder, "");
  EXPECT_EQ(released->duration_seconds, 1);
  EXPECT_EQ(released->resource_version, "8");
  core.Observed(Foreign(), At(1));
  EXPECT_FALSE(core.Released(kWall)) << "never a lease that is not ours";
}

TEST(KubeLeaderElection, TheTimesMustLeaveRoom) {
  EXPECT_TRUE(CheckElectionTimes({}).ok());
  EXPECT_FALSE(CheckElectionTimes({seconds(10), seconds(10), seconds(2)}).ok());
  EXPECT_FALSE(CheckElectionTimes({seconds(15), milliseconds(2400), seconds(2)}).ok());
  EXPECT_FALSE(CheckElectionTimes({seconds(15), seconds(10), seconds(0)}).ok());
  EXPECT_FALSE(CheckElectionTimes({milliseconds(900), milliseconds(500), milliseconds(100)}).ok());
}

TEST(KubeLeaderElection, ALeaseGoesToJsonAndBack) {
  const LeaseRecord record = Foreign();
  EXPECT_EQ(LeaseRecordOf(LeaseObject({"ns", "name"}, record)), record);
  EXPECT_EQ(LeaseRecordOf(nlohmann::json::parse(R"({"spec": {"leaseTransitions": null}})")),
            LeaseRecord());
}

}  // namespace
}  // namespace parallelrun::kube
