#include "agent/objects/store_trouble.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

constexpr WallTime kNine{seconds(1795251600)};  // 2026-11-21T09:00:00Z

TEST(StoreTroubleTest, AStoreThatGivesNothingIsNamedWithItsLastAnswerAndSinceWhen) {
  StoreTrouble trouble;
  EXPECT_EQ(trouble.Text(kNine), "");
  trouble.Begins(1, "s3://box/in", kNine);
  trouble.Begins(2, "s3://box/in", kNine + seconds(1));
  EXPECT_EQ(trouble.Text(kNine + seconds(4)), "") << "that takes a while";
  EXPECT_EQ(trouble.Text(kNine + seconds(5)),
            "it waits for an object of the store s3://box/in, which has answered nothing "
            "since 2026-11-21T09:00:00Z");
  trouble.Ends(2, "s3://box/in/b: connection\nrefused", kNine + seconds(61));
  trouble.Ends(1, "s3://box/in/a: no answer for 60 s", kNine + seconds(62));
  trouble.Begins(2, "s3://box/in", kNine + seconds(70));
  EXPECT_EQ(trouble.Text(kNine + seconds(71)),
            "the store s3://box/in has given nothing since 2026-11-21T09:00:00Z; its last answer: "
            "s3://box/in/a: no answer for 60 s");
  trouble.Begins(3, "s3://box/in", kNine + seconds(75));
  trouble.Ends(2, "", kNine + seconds(80));
  EXPECT_EQ(trouble.Text(kNine + seconds(81)), "") << "it answers";
  trouble.Ends(3, "refused", kNine + seconds(90));
  EXPECT_NE(trouble.Text(kNine + seconds(91)).find("nothing since 2026-11-21T09:01:20Z"),
            std::string::npos)
      << "it has answered since step 3 began";
}

TEST(StoreTroubleTest, WhatCouldNotBeAskedForLongIsTold) {
  StoreTrouble trouble;
  trouble.Begins(1, "s3://box/in", kNine);
  EXPECT_EQ(trouble.Lasting(kNine + seconds(60)), "") << "it may be a large object";
  trouble.Ends(1, "refused", kNine + seconds(61));
  trouble.Begins(2, "s3://other", kNine + seconds(61));
  trouble.Ends(2, "refused", kNine + seconds(62));
  EXPECT_EQ(trouble.Lasting(kNine + seconds(62)),
            "the store s3://box/in has given nothing since 2026-11-21T09:00:00Z; its last answer: "
            "refused");
  trouble.Begins(3, "s3://box/in", kNine + seconds(63));
  trouble.Ends(3, "", kNine + seconds(64));
  EXPECT_EQ(trouble.Lasting(kNine + seconds(70)), "");
  EXPECT_EQ(trouble.Lasting(kNine + seconds(71)),
            "the store s3://other has given nothing since 2026-11-21T09:01:01Z; its last answer: "
            "refused");
}

TEST(StoreTroubleTest, WhatAsksNobodyIsNoAnswer) {
  StoreTrouble trouble;
  trouble.Begins(1, "s3://gone", kNine);
  trouble.Ends(1, "refused", kNine + seconds(1));
  trouble.Begins(2, "s3://gone", kNine + seconds(2));
  trouble.EndsUnasked(2);
  EXPECT_NE(trouble.Text(kNine + seconds(9)).find("given nothing since 2026-11-21T09:00:00Z"),
            std::string::npos);
  trouble.EndsUnasked(3);
}

TEST(StoreTroubleTest, OneStoreThatAnswersIsNoAnswerOfAnother) {
  StoreTrouble trouble;
  trouble.Begins(1, "s3://gone", kNine);
  trouble.Ends(1, "refused", kNine);
  trouble.Begins(2, "s3://there", kNine);
  trouble.Ends(2, "", kNine);
  EXPECT_NE(trouble.Text(kNine).find("s3://gone has given nothing"), std::string::npos);
}

TEST(StoreTroubleTest, WhatIsToldIsBoundedAndEscaped) {
  StoreTrouble trouble;
  trouble.Begins(1, "s3://" + std::string(5000, 'b'), kNine);
  trouble.Ends(1, "\x1b[2J" + std::string(5000, 'a'), kNine);
  EXPECT_LT(trouble.Text(kNine).size(), 1000U);
  EXPECT_EQ(trouble.Text(kNine).find('\x1b'), std::string::npos);
  trouble.Ends(7, "of a step that nobody knows", kNine);
}

}  // namespace
}  // namespace parallelrun::agent
