#include "coordinator/store_waits.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace parallelrun::coordinator {
namespace {

constexpr WallTime kBegun{seconds(1795255200)};  // 2026-11-21T10:00:00Z
constexpr char kNode[] = "node 0: throttled by the store s3://box";

store::Wished StoreAt(const char* url, std::shared_ptr<store::AnswerTally> tally) {
  store::Wished wished;
  wished.url = url;
  wished.tally = std::move(tally);
  return wished;
}

TEST(StoreWaits, WhatThrottlesTheCoordinatorStandsBeforeWhatNodesSay) {
  const auto photos = std::make_shared<store::AnswerTally>();
  const auto rows = std::make_shared<store::AnswerTally>();
  StoreWaits waits(
      {{"photos", StoreAt("s3://photos", photos)}, {"rows", StoreAt("s3://rows", rows)}});
  EXPECT_EQ(waits.With(""), "");
  EXPECT_EQ(waits.With(kNode), kNode);
  rows->Add(false);
  photos->Add(true);
  waits.Observe(kBegun);
  EXPECT_EQ(waits.own(), "") << "that may be over in a moment";
  photos->Add(true);
  waits.Observe(kBegun + seconds(10));
  EXPECT_EQ(waits.own(), "throttled by the store s3://photos since 2026-11-21T10:00:00Z");
  EXPECT_EQ(waits.With(""), "the coordinator: " + waits.own());
  EXPECT_EQ(waits.With(kNode), "the coordinator: " + waits.own() + "; " + kNode);
  waits.Observe(kBegun + seconds(60));
  EXPECT_EQ(waits.With(kNode), kNode);
}

TEST(StoreWaits, TwoStoresOfOneUrlAreOne) {
  const auto first = std::make_shared<store::AnswerTally>();
  const auto second = std::make_shared<store::AnswerTally>();
  StoreWaits waits({{"in", StoreAt("s3://box", first)}, {"out", StoreAt("s3://box", second)}});
  first->Add(true);
  second->Add(true);
  second->Add(true);
  for (int passed = 0; passed <= 20; ++passed) waits.Observe(kBegun + seconds(passed));
  EXPECT_EQ(waits.own(), "") << "nothing has come since the first look";
}

TEST(StoreWaits, WhatIsNotCountedIsNotTold) {
  const std::map<std::string, store::Wished> stores = {{"photos", StoreAt("s3://photos", nullptr)}};
  StoreWaits waits(stores);
  waits.Observe(kBegun);
  EXPECT_EQ(waits.With(""), "");
}

}  // namespace
}  // namespace parallelrun::coordinator
