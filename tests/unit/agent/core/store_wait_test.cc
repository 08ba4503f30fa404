// A store that keeps a node waiting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/core/agent_core.h"
#include "tests/unit/agent/core/harness.h"

namespace parallelrun::agent {
namespace {

using ::testing::SizeIs;

constexpr char kThrottled[] = "throttled by the store s3://box since 2026-11-21T10:00:00Z";

TEST(AgentCoreStoreWait, IsToldWhenItChanges) {
  CoreHarness h(1);
  h.core.OnStoreWait("");
  h.Begin();
  h.Answer(h.Reply());
  h.core.OnStoreWait(kThrottled);
  h.core.OnStoreWait(kThrottled);
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].kind, job::ProcessEvent::Kind::kStoreWait);
  EXPECT_EQ(h.request.events[0].message, kThrottled);
  h.Answer(h.Reply());
  h.core.OnStoreWait("");
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_THAT(h.request.events, SizeIs(1));
  EXPECT_EQ(h.request.events[0].message, "");
}

TEST(AgentCoreStoreWait, IsToldToANewCoordinator) {
  CoreHarness h(1);
  h.Begin();
  h.core.OnStoreWait(kThrottled);
  h.core.OnCallFailed(CallKind::kReport, CallFailure::kStale, h.now());
  h.Advance(milliseconds(50));
  ASSERT_EQ(h.Next(), CallKind::kRegister);
  h.registration.incarnation = {2, 1};
  h.core.OnRegistered(h.registration, h.now());
  h.Step();
  ASSERT_TRUE(h.NextReport());
  ASSERT_FALSE(h.request.events.empty());
  EXPECT_EQ(h.request.events.back().kind, job::ProcessEvent::Kind::kStoreWait);
  EXPECT_EQ(h.request.events.back().message, kThrottled);
}

}  // namespace
}  // namespace parallelrun::agent
