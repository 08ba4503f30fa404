#include "store/objects/validity.h"

#include <gtest/gtest.h>

namespace parallelrun::store {
namespace {

TEST(Validity, RenewedFiveMinutesBeforeTheEndOrAtHalfTime) {
  EXPECT_FALSE(ValidityOf(std::nullopt));
  EXPECT_EQ(ValidityOf(seconds(3600))->renew, seconds(3300));
  EXPECT_EQ(ValidityOf(seconds(3600))->end, seconds(3600));
  EXPECT_EQ(ValidityOf(seconds(400))->renew, seconds(200));
  // Ended when they come: a clock is wrong, and they are tried.
  EXPECT_EQ(ValidityOf(seconds(-3600))->end, seconds(60));
}

}  // namespace
}  // namespace parallelrun::store
