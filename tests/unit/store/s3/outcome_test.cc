#include "store/s3/outcome.h"

#include <gtest/gtest.h>

namespace parallelrun::store::s3 {
namespace {

TEST(S3Outcome, WhatAnAnswerComesTo) {
  EXPECT_EQ(OutcomeOf(200, "", false), Outcome::kDone);
  EXPECT_EQ(OutcomeOf(206, "", true), Outcome::kDone);
  EXPECT_EQ(OutcomeOf(200, "InternalError", false), Outcome::kServerFault);
  EXPECT_EQ(OutcomeOf(200, "SlowDown", false), Outcome::kThrottled);
  EXPECT_EQ(OutcomeOf(200, "Unheard", false), Outcome::kFinal);
  for (const int status : {429, 503}) {
    EXPECT_EQ(OutcomeOf(status, "", false), Outcome::kThrottled) << status;
  }
  for (const int status : {408, 500, 502, 504}) {
    EXPECT_EQ(OutcomeOf(status, "", false), Outcome::kServerFault) << status;
  }
  for (const int status : {400, 401, 403, 404, 409, 412, 416, 501}) {
    EXPECT_EQ(OutcomeOf(status, "", false), Outcome::kFinal) << status;
  }
  EXPECT_EQ(OutcomeOf(403, "RequestTimeTooSkewed", false), Outcome::kClockSkew);
  EXPECT_EQ(OutcomeOf(400, "ExpiredToken", false), Outcome::kExpired);
  EXPECT_EQ(OutcomeOf(400, "AuthorizationHeaderMalformed", true), Outcome::kWrongRegion);
  EXPECT_EQ(OutcomeOf(301, "PermanentRedirect", true), Outcome::kWrongRegion);
  EXPECT_EQ(OutcomeOf(301, "PermanentRedirect", false), Outcome::kFinal);
  EXPECT_EQ(OutcomeOf(403, "AccessDenied", true), Outcome::kFinal);
}

}  // namespace
}  // namespace parallelrun::store::s3
