#include "agent/agent_client.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace parallelrun::agent {
namespace {

Result<HttpResponse> Answer(int status) {
  HttpResponse response;
  response.status = status;
  return response;
}

const Result<HttpResponse> kSilence = Error{Code::kTimeout, "no answer"};
const Result<HttpResponse> kNobody = Error{Code::kUnavailable, "connection refused"};

TEST(AgentClient, ASilentAddressIsTriedAgainSoon) {
  CallLimits limits;
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(1));
  limits.OnResult(CallKind::kRegister, kSilence);
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(2));
  for (int i = 0; i < 5; ++i) limits.OnResult(CallKind::kRegister, kSilence);
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(60));
}

TEST(AgentClient, OnlySilenceMakesTheLimitGrow) {
  CallLimits limits;
  limits.OnResult(CallKind::kRegister, kNobody);
  limits.OnResult(CallKind::kReport, kSilence);
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(1));
  limits.OnResult(CallKind::kRegister, kSilence);
  limits.OnResult(CallKind::kRegister, Answer(503));
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(1));
}

TEST(AgentClient, ACoordinatorThatAnsweredIsWaitedForLonger) {
  CallLimits limits;
  EXPECT_EQ(limits.Of(CallKind::kPark, seconds(20)), seconds(80));
  EXPECT_EQ(limits.Of(CallKind::kReport, Duration(0)), seconds(60));
  limits.OnResult(CallKind::kReport, kNobody);
  EXPECT_EQ(limits.Of(CallKind::kReport, Duration(0)), seconds(1));
  EXPECT_EQ(limits.Of(CallKind::kPark, seconds(20)), seconds(21));
  limits.OnResult(CallKind::kPark, kSilence);
  EXPECT_EQ(limits.Of(CallKind::kReport, Duration(0)), seconds(2));
  limits.OnResult(CallKind::kReport, Answer(409));
  EXPECT_EQ(limits.Of(CallKind::kReport, Duration(0)), seconds(60));
  // It may be another one by now.
  limits.OnResult(CallKind::kReport, kSilence);
  EXPECT_EQ(limits.Of(CallKind::kReport, Duration(0)), seconds(1));
}

}  // namespace
}  // namespace parallelrun::agent
