// The correlator's figures are client-go's: tools/record/events_cache.go.
#include "kube/events.h"

#include <gtest/gtest.h>

#include <map>

namespace parallelrun::kube {
namespace {

constexpr WallTime kWall{seconds(1'700'000'000)};
Instant At(int64_t s) { return Instant(seconds(s)); }

Event About(const std::string& name, const std::string& message) {
  Event event;
  event.api_version = "parallelrun.dev/v1alpha1";
  event.kind = "ParallelRunJob";
  event.object = {"ns", name};
  event.uid = "uid-" + name;
  event.type = EventType::kWarning;
  event.reason = "NodeFailed";
  event.message = message;
  return event;
}

TEST(KubeEvents, TheFirstIsCreatedTheNextCount) {
  EventCorrelator correlator("operator");
  const auto first = correlator.Correlate(About("a", "boom"), At(100), kWall);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->create);
  EXPECT_EQ(first->object["involvedObject"],
            nlohmann::json::parse(R"({"apiVersion": "parallelrun.dev/v1alpha1",
                "kind": "ParallelRunJob", "name": "a", "namespace": "ns", "uid": "uid-a"})"));
  EXPECT_EQ(first->object["type"], "Warning");
  EXPECT_EQ(first->object["source"]["component"], "operator");
  EXPECT_EQ(first->name.name_space, "ns");
  const auto second = correlator.Correlate(About("a", "boom"), At(101), kWall + seconds(1));
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->create);
  EXPECT_EQ(second->name.name, first->name.name);
  EXPECT_EQ(second->patch["count"], 2);
  EXPECT_EQ(second->patch["lastTimestamp"], "2023-11-14T22:13:21Z");
  EXPECT_EQ(second->object["firstTimestamp"], "2023-11-14T22:13:20Z");
}

TEST(KubeEvents, MoreThanTenAlikeWithinTenMinutesAreCombined) {
  EventCorrelator correlator("operator");
  std::map<std::string, int> names;
  for (int i = 0; i < 14; ++i) {
    const auto write = correlator.Correlate(About("a", "m" + std::to_string(i)), At(i), kWall);
    ASSERT_TRUE(write);
    ++names[write->name.name];
    const bool combined = write->object["message"].get<std::string>().starts_with("(combined");
    EXPECT_EQ(combined, i >= 10) << i;
  }
  EXPECT_EQ(names.size(), 11u);
  // Another object, and another reason, are not alike.
  EXPECT_TRUE(correlator.Correlate(About("b", "m99"), At(20), kWall)->create);
  Event other = About("a", "m99");
  other.reason = "Other";
  EXPECT_EQ(correlator.Correlate(other, At(20), kWall)->object["message"], "m99");
  // After ten quiet minutes it begins anew.
  EXPECT_EQ(correlator.Correlate(About("a", "m98"), At(14 + 601), kWall)->object["message"], "m98");
}

TEST(KubeEvents, AnObjectHas25AtOnceThenOneEachFiveMinutes) {
  EventCorrelator correlator("operator");
  const auto written = [&](const char* name, int64_t s) {
    return correlator.Correlate(About(name, "boom"), At(s), kWall).has_value();
  };
  for (int i = 0; i < 25; ++i) EXPECT_TRUE(written("a", 100)) << i;
  EXPECT_FALSE(written("a", 100));
  EXPECT_TRUE(written("b", 100)) << "each object has its own";
  EXPECT_FALSE(written("a", 399));
  EXPECT_TRUE(written("a", 401));
  EXPECT_FALSE(written("a", 402));
}

TEST(KubeEvents, MemoryIsBounded) {
  EventCorrelator correlator("operator");
  const auto first = correlator.Correlate(About("job", "boom"), At(1), kWall);
  for (int i = 0; i < 5000; ++i) {
    ASSERT_TRUE(correlator.Correlate(About("other" + std::to_string(i), "boom"), At(1), kWall));
  }
  const auto again = correlator.Correlate(About("job", "boom"), At(2), kWall);
  EXPECT_TRUE(again->create) << "forgotten, as 4,096 were used since";
  EXPECT_NE(again->name.name, first->name.name);
}

TEST(KubeEvents, WhatTheServerWouldRefuseIsMadeToFit) {
  EventCorrelator correlator("operator");
  Event event = About(std::string(250, 'n'), std::string(5000, 'x') + "\n\xff");
  event.reason = std::string(300, 'r');
  event.object.name_space.clear();  // such as a node: its events live in "default"
  const auto write = correlator.Correlate(event, At(1), kWall);
  EXPECT_LE(write->object["message"].get<std::string>().size(), 1024u);
  EXPECT_LE(write->object["reason"].get<std::string>().size(), 128u);
  EXPECT_LE(write->name.name.size(), 253u);
  EXPECT_EQ(write->name.name_space, "default");
  EXPECT_FALSE(write->object["involvedObject"].contains("namespace"));
}

}  // namespace
}  // namespace parallelrun::kube
