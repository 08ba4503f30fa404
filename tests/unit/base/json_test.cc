#include "base/json.h"

#include <gtest/gtest.h>

namespace parallelrun {
namespace {

using nlohmann::json;

std::string Nested(int depth) {
  const auto size = static_cast<size_t>(depth);
  return std::string(size, '[') + "\"]]}}\\\"\"" + std::string(size, ']');
}

TEST(JsonTest, WhatIsNoJsonOrTooDeepIsNothing) {
  EXPECT_TRUE(ParseJson(Nested(128)));
  EXPECT_FALSE(ParseJson(Nested(129)));
  EXPECT_FALSE(ParseJson(Nested(1'000'000)));
  EXPECT_TRUE(ParseJson("[[],[],{}]", 2));
  EXPECT_FALSE(ParseJson(R"({"a": [[]]})", 2));
  EXPECT_TRUE(ParseJson(R"({"a": "[[[\"[["})", 1)) << "a text has no depth";
  EXPECT_FALSE(ParseJson("[1,"));
  EXPECT_FALSE(ParseJson(""));
}

TEST(JsonTest, AnObjectIsAskedForByName) {
  EXPECT_TRUE(ParseObject("{}"));
  EXPECT_FALSE(ParseObject("[]"));
  EXPECT_FALSE(ParseObject("{"));
  EXPECT_FALSE(ParseObject(R"({"a": [[]]})", 2));
}

TEST(MembersTest, TheFirstThatIsWrongIsTheError) {
  const json object = *ParseJson(R"({"name": "a", "count": 7, "list": [1]})");
  Members in(object, "the answer");
  EXPECT_EQ(in.Text("name"), "a");
  EXPECT_EQ(in.TextOr("other", "b"), "b");
  EXPECT_EQ(in.Unsigned("count", 7), 7U);
  EXPECT_EQ(in.UnsignedOr("other", 7, 3), 3U);
  EXPECT_EQ(in.ValueOr("list", json::array()).size(), 1U);
  ASSERT_TRUE(in.status().ok());
  EXPECT_EQ(in.Text("count"), "");
  EXPECT_EQ(in.U32("name"), 0U);
  EXPECT_EQ(in.status().error().message, "the answer: \"count\" is missing or has the wrong type");
  EXPECT_EQ(in.Text("name"), "") << "behind an error nothing is read";
}

TEST(MembersTest, NumbersHaveBounds) {
  const json object = *ParseJson(R"({"count": 8, "below": -1, "large": 4294967296})");
  const auto why = [&object](const auto& read) {
    Members in(object, "it");
    read(in);
    return in.status().ok() ? "" : in.status().error().message;
  };
  EXPECT_EQ(why([](Members& in) { in.Unsigned("count", 7); }), "it: \"count\" is above 7");
  EXPECT_EQ(why([](Members& in) { in.U32("large"); }), "it: \"large\" is above 4294967295");
  EXPECT_NE(why([](Members& in) { in.Unsigned("below", 7); }), "");
  EXPECT_NE(why([](Members& in) { in.TextOr("count", ""); }), "") << "what is there must be right";
  const json flags = {{"yes", true}, {"one", 1}};
  Members in(flags, "it");
  EXPECT_TRUE(in.Boolean("yes"));
  EXPECT_TRUE(in.BooleanOr("other", true));
  EXPECT_FALSE(in.BooleanOr("one", true));
  EXPECT_EQ(in.status().error().message, "it: \"one\" is missing or has the wrong type");
  const json list = json::array();
  EXPECT_EQ(Members(list, "it").status().error().message, "it: it is no JSON object");
}

TEST(LenientTest, WhatIsMissingOrOfAnotherTypeIsPassedOver) {
  const json object = {{"text", "a"}, {"number", 2}, {"half", 0.5}, {"yes", true}, {"list", {1}}};
  EXPECT_EQ(lenient::Text(object, "text"), "a");
  EXPECT_EQ(lenient::Text(object, "number"), "");
  EXPECT_EQ(lenient::Integer(object, "number"), 2);
  EXPECT_EQ(lenient::Integer(object, "half", 9), 9);
  EXPECT_EQ(lenient::Unsigned(object, "text", 3), 3U);
  EXPECT_EQ(lenient::Number(object, "half"), 0.5);
  EXPECT_TRUE(lenient::Boolean(object, "yes"));
  EXPECT_FALSE(lenient::Boolean(object, "number"));
  EXPECT_EQ(lenient::List(object, "list").size(), 1U);
  EXPECT_TRUE(lenient::List(object, "text").empty());
  EXPECT_TRUE(lenient::At(json("no object"), "text").is_null());
}

TEST(LenientTest, AWayThroughSeveral) {
  const json object = *ParseJson(R"({"a": {"b": [1, {"c": "d"}]}})");
  EXPECT_EQ(lenient::AtPath(object, "/a/b/1/c"), "d");
  EXPECT_TRUE(lenient::AtPath(object, "/a/c").is_null());
  EXPECT_TRUE(lenient::AtPath(object, "/a/b/2").is_null());
  EXPECT_TRUE(lenient::AtPath(object, "/a/b/c").is_null());
  EXPECT_TRUE(lenient::AtPath(json(7), "/a").is_null());
}

TEST(LenientTest, ANumberThatTheTypeDoesNotHoldIsNone) {
  const json object = {{"most", INT64_MAX}, {"large", uint64_t{1} << 63}, {"below", -1}};
  EXPECT_EQ(lenient::MaybeInteger(object, "most"), INT64_MAX);
  EXPECT_EQ(lenient::MaybeInteger(object, "large"), std::nullopt);
  EXPECT_EQ(lenient::Integer(object, "below"), -1);
  EXPECT_EQ(lenient::Unsigned(object, "below", 4), 4U);
  EXPECT_EQ(lenient::Unsigned(object, "large"), uint64_t{1} << 63);
  EXPECT_EQ(lenient::Unsigned(json{{"int", 20}}, "int"), 20U) << "whatever it is held as";
}

}  // namespace
}  // namespace parallelrun
