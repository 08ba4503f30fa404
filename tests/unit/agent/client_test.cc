#include "agent/agent_client.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace parallelrun {
namespace {

Result<HttpResponse> Answer(int status) {
  HttpResponse response;
  response.status = status;
  return response;
}

TEST(AgentClient, ASilentAddressIsTriedAgainSoon) {
  const Result<HttpResponse> silence = Error{Code::kTimeout, "no answer"};
  CallLimits limits;
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(2));
  limits.OnResult(CallKind::kRegister, silence);
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(4));
  for (int i = 0; i < 10; ++i) limits.OnResult(CallKind::kRegister, silence);
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(60));
}

TEST(AgentClient, OnlySilenceMakesTheLimitGrow) {
  CallLimits limits;
  limits.OnResult(CallKind::kRegister, Error{Code::kUnavailable, "connection refused"});
  limits.OnResult(CallKind::kReport, Error{Code::kTimeout, "no answer"});
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(2));
  limits.OnResult(CallKind::kRegister, Error{Code::kTimeout, "no answer"});
  limits.OnResult(CallKind::kRegister, Answer(503));
  EXPECT_EQ(limits.Of(CallKind::kRegister, Duration(0)), seconds(2));
}

TEST(AgentClient, AParkedCallIsWaitedForLonger) {
  const CallLimits limits;
  EXPECT_EQ(limits.Of(CallKind::kPark, seconds(20)), seconds(80));
  EXPECT_EQ(limits.Of(CallKind::kReport, Duration(0)), seconds(60));
}

}  // namespace
}  // namespace parallelrun
