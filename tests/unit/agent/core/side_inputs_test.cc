// Side inputs that a node fetches before it starts a process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "agent/core/agent_core.h"
#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = job::ProcessEvent::Kind;

TEST(AgentCoreSideInputs, NoProcessIsStartedBeforeTheyAreThere) {
  CoreHarness h(2);
  h.core.OnFetching("fetching side input model, 0.0 of 4.0 GB", 0);
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  EXPECT_THAT(h.started, IsEmpty());
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].kind, Kind::kFetching);
  EXPECT_EQ(h.request.events[0].message, "fetching side input model, 0.0 of 4.0 GB");
  EXPECT_EQ(h.request.events[0].log, "0");
  EXPECT_EQ(h.request.want, 0U);
  h.Answer(h.Reply());

  h.core.OnFetching("fetching side input model, 1.2 of 4.0 GB", 1288490189);
  h.core.OnFetching("fetching side input model, 1.2 of 4.0 GB", 1288490190);  // nothing new
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].log, "1288490189");
  h.Answer(h.Reply());
  EXPECT_THAT(h.started, IsEmpty());

  h.core.OnFetching("", 4294967296);
  h.Step();
  EXPECT_THAT(h.started, ElementsAre(0, 1));
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].kind, Kind::kFetching);
  EXPECT_EQ(h.request.events[0].message, "");
}

TEST(AgentCoreSideInputs, ANewCoordinatorHearsWhatIsFetched) {
  CoreHarness h(1);
  h.core.OnFetching("fetching side input model, 0.0 of 4.0 GB", 0);
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  ASSERT_TRUE(h.NextReport());
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(milliseconds(50));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {2, 1};
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_FALSE(h.request.events.empty());
  EXPECT_EQ(h.request.events.back().kind, Kind::kFetching);
  EXPECT_THAT(h.started, IsEmpty());
}

TEST(AgentCoreSideInputs, OneThatIsLostEndsTheNodeAndSaysWhy) {
  CoreHarness h(1);
  h.core.OnFetching("fetching side input model, 0.0 of 4.0 GB", 0);
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  ASSERT_TRUE(h.NextReport());
  h.Answer(h.Reply());
  h.core.OnSideInputsLost("the side input model: s3://m/w was deleted", h.now());
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].kind, Kind::kFetchFailed);
  EXPECT_EQ(h.request.events[0].message, "the side input model: s3://m/w was deleted");
  h.Answer(h.Reply());
  EXPECT_EQ(h.core.end(), AgentEnd::kGaveUp);
  EXPECT_EQ(h.core.end_message(), "the side input model: s3://m/w was deleted");
  EXPECT_THAT(h.started, IsEmpty());
}

}  // namespace
}  // namespace parallelrun::agent
