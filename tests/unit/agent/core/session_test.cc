#include "agent/core/session.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

Registration Terms(job::Incarnation incarnation, uint64_t settings) {
  Registration terms;
  terms.incarnation = incarnation;
  terms.settings_digest = settings;
  terms.speculation = false;
  terms.lease = seconds(10);
  return terms;
}

TEST(Session, BeginsByWantingARegistration) {
  Session session;
  EXPECT_TRUE(session.wanted());
  EXPECT_FALSE(session.ever());
  EXPECT_FALSE(session.Begin(Terms({1, 1}, 7))) << "there was no other configuration";
  EXPECT_FALSE(session.wanted());
  EXPECT_TRUE(session.ever());
}

TEST(Session, AnAnswerHoldsForTheRegistrationInForceOnly) {
  Session session;
  session.Begin(Terms({1, 1}, 7));
  EXPECT_TRUE(session.InForce({1, 1}));
  session.Want();
  EXPECT_FALSE(session.InForce({1, 1}));
  EXPECT_TRUE(session.Latest({1, 1})) << "no other one is there yet";
  session.Begin(Terms({1, 2}, 7));
  EXPECT_FALSE(session.Latest({1, 1}));
  EXPECT_TRUE(session.InForce({1, 2}));
}

TEST(Session, AnotherConfigurationIsNoticed) {
  Session session;
  session.Begin(Terms({1, 1}, 7));
  EXPECT_FALSE(session.Begin(Terms({2, 1}, 7)));
  EXPECT_TRUE(session.Begin(Terms({3, 1}, 8)));
  EXPECT_FALSE(session.Begin(Terms({4, 1}, 8)));
}

TEST(Session, ALeaseMayBeOverATenthBeforeItsTime) {
  Session session;
  Registration terms = Terms({1, 1}, 7);
  session.Begin(terms);
  const Instant now(seconds(100));
  EXPECT_EQ(session.OverBefore(now), now - seconds(9));
  terms.speculation = true;
  session.Begin(terms);
  EXPECT_EQ(session.OverBefore(now), Instant::min());
}

}  // namespace
}  // namespace parallelrun::agent
