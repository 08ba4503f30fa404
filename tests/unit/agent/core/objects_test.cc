// Mini-batches whose Work names objects are given to a process once these are files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Objects : public CoreHarness, public ::testing::Test {
 protected:
  // Work that names objects, as far as the core looks.
  static job::Leased OfObjects(job::BatchId id) {
    static const std::string kWork = std::string("\1\1", 2) + std::string(38, '\0');
    job::Leased leased = Lease(id);
    leased.work = kWork;
    return leased;
  }
  void BeginWithObjects(uint32_t count) {
    Begin();
    job::ExchangeReply reply = Reply();
    for (job::BatchId id = 0; id < count; ++id) reply.leased.push_back(OfObjects(id));
    Answer(reply);
    Take();
  }
  void Take() {
    core.TakeObjects(wanted, let_go);
    keys.clear();
    for (const ObjectsWanted& one : wanted) keys.push_back(one.key);
  }
  std::vector<ObjectsWanted> wanted;
  std::vector<Key> keys;
  std::vector<Key> let_go;
};

TEST_F(Objects, AreFetchedBeforeAProcessGetsTheWork) {
  BeginWithObjects(2);
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_THAT(given, IsEmpty());
  core.OnFetched(keys[1], "files");
  Step();
  EXPECT_EQ(given[0].size(), 1U) << "the second is here first";
  EXPECT_EQ(core.held(), 2U) << "the lease of the first is kept";
}

TEST_F(Objects, AreLetGoOfWhenTheResultIsThere) {
  BeginWithObjects(1);
  const Key key = keys[0];
  core.OnFetched(key, std::string(40, '\0'));
  Step();
  Take();
  EXPECT_THAT(let_go, IsEmpty());
  ASSERT_TRUE(Succeed(0, given[0][0]));
  Take();
  EXPECT_THAT(let_go, ElementsAre(key));
}

TEST_F(Objects, ThatChangedFailTheMiniBatch) {
  BeginWithObjects(1);
  core.OnNotFetched(keys[0], {Code::kStale, "s3://b/a is not what was listed"}, now());
  Step();
  ASSERT_TRUE(NextReport());
  ASSERT_EQ(request.finished.size(), 1U);
  EXPECT_EQ(request.finished[0].kind, job::Finished::Kind::kFailed);
  EXPECT_EQ(request.finished[0].error_kind, "InputChanged");
  EXPECT_EQ(request.finished[0].cause, job::Cause::kInput);
  Take();
  EXPECT_EQ(let_go.size(), 1U);
}

TEST_F(Objects, ThatGaveWayAreHandedBackWithoutAFailure) {
  BeginWithObjects(1);
  core.OnNotFetched(keys[0], {Code::kUnavailable, "others have the room"}, now());
  Step();
  ASSERT_TRUE(NextReport());
  ASSERT_EQ(request.finished.size(), 1U);
  EXPECT_EQ(request.finished[0].kind, job::Finished::Kind::kReturned);
}

TEST_F(Objects, ThatAreUnderWayWhenTheNodeDrainsAreHandedBack) {
  BeginWithObjects(2);
  core.Drain(seconds(10), now());
  Step();
  Take();
  EXPECT_EQ(let_go.size(), 2U);
  ASSERT_TRUE(NextReport());
  EXPECT_EQ(request.finished.size(), 2U);
}

TEST_F(Objects, WhoseUrlsHaveEndedAreAskedForWithTheNextListOfWhatIsHeld) {
  BeginWithObjects(2);
  core.OnUrlEnded(keys[0]);
  Advance(seconds(1));
  const CallKind call = Next();
  ASSERT_TRUE(call == CallKind::kReport || call == CallKind::kPark);
  ASSERT_EQ(request.held.size(), 2U);
  for (const job::HeldLease& held : request.held) EXPECT_EQ(held.wants_urls, held.id == 0);
  Answer(Reply(), call);
  EXPECT_EQ(core.Fetching({0, Lease(0).fence}), keys[0]);
  core.OnUrlsTold(keys[0]);
  Advance(seconds(1));
  const CallKind next = Next();
  ASSERT_TRUE(next == CallKind::kReport || next == CallKind::kPark);
  ASSERT_EQ(request.held.size(), 2U);
  for (const job::HeldLease& held : request.held) EXPECT_FALSE(held.wants_urls);
  core.OnFetched(keys[0], "files");
  core.OnUrlEnded(keys[0]);  // too late
  EXPECT_FALSE(core.Fetching({0, Lease(0).fence}));
}

TEST_F(Objects, OfARefusedMiniBatchAreWantedNoMore) {
  BeginWithObjects(1);
  const Key key = keys[0];
  Advance(seconds(5));  // the lease is to be renewed
  const CallKind call = Next();
  ASSERT_TRUE(call == CallKind::kReport || call == CallKind::kPark);
  job::ExchangeReply reply = Reply();
  reply.refused.push_back({0, Lease(0).fence});
  Answer(reply, call);
  Take();
  EXPECT_THAT(let_go, ElementsAre(key));
  core.OnFetched(key, "files");  // too late
  Step();
  EXPECT_THAT(given, IsEmpty());
}

}  // namespace
}  // namespace parallelrun::agent
