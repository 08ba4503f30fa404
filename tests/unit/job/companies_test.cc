#include "job/companies.h"

#include <gtest/gtest.h>

namespace parallelrun::job {
namespace {

TEST(Companies, OneDeathIsNoSuspicion) {
  Companies companies;
  EXPECT_EQ(companies.Of(3), kAnyCompany);
  EXPECT_FALSE(companies.HeldAtDeath(3));
  companies.Add(3, kHeldOnce);
  EXPECT_EQ(companies.Of(3), kAnyCompany);
  EXPECT_TRUE(companies.HeldAtDeath(3));
}

TEST(Companies, TheLeastThatWasSaidCounts) {
  Companies companies;
  companies.Add(3, kHeldOnce);
  companies.Add(3, 4);
  companies.Add(3, 8);
  EXPECT_EQ(companies.Of(3), 4U);
  companies.Add(3, kHeldOnce);
  EXPECT_EQ(companies.Of(3), 4U) << "by another death";
  EXPECT_EQ(companies.Of(4), kAnyCompany);
}

TEST(Companies, WhatSucceededIsForgotten) {
  Companies companies;
  companies.Add(3, 2);
  companies.Forget(3);
  EXPECT_EQ(companies.Of(3), kAnyCompany);
  EXPECT_FALSE(companies.HeldAtDeath(3));
}

}  // namespace
}  // namespace parallelrun::job
