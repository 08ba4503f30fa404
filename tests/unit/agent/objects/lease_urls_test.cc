#include "agent/objects/lease_urls.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace parallelrun::agent {
namespace {

constexpr Instant kStart{seconds(1000)};

job::ObjectUrls UrlsFor(uint32_t life, std::vector<std::string_view> urls) {
  job::ObjectUrls some;
  some.seconds = life;
  some.urls = std::move(urls);
  return some;
}

class LeaseUrlsTest : public testing::Test {
 protected:
  std::string UrlOf(const std::string& location, Instant now = kStart) const {
    const auto entry = stores_[0].urls->Get(location, now);
    return entry ? entry->url : "";
  }

  const std::vector<JobStore> stores_{{"signed", {}, std::make_shared<store::UrlTable>()},
                                      {"keys", {}, nullptr}};
  const job::ObjectName first_{"signed", "s3://b/1", "v1"};
  const job::ObjectName second_{"signed", "s3://b/2", "v2"};
  const job::ObjectName other_{"keys", "s3://c/1", "v1"};
  LeaseUrls urls_{stores_};
};

TEST_F(LeaseUrlsTest, UrlsAndObjectsComeInEitherOrder) {
  urls_.Take(1, UrlsFor(60, {"https://1", "https://2"}), kStart);
  EXPECT_EQ(UrlOf("s3://b/1"), "") << "nobody knows what they are of";
  urls_.Want(1, {first_, second_}, kStart);
  EXPECT_EQ(UrlOf("s3://b/1"), "https://1");
  EXPECT_EQ(UrlOf("s3://b/2"), "https://2");
  urls_.Take(1, UrlsFor(60, {"https://3", "https://4"}), kStart);
  EXPECT_EQ(UrlOf("s3://b/2"), "https://4");
}

TEST_F(LeaseUrlsTest, AnObjectThatIsReadByKeysHasNone) {
  urls_.Take(1, UrlsFor(60, {"", "https://2"}), kStart);
  urls_.Want(1, {other_, second_}, kStart);
  EXPECT_EQ(UrlOf("s3://c/1"), "");
  EXPECT_EQ(UrlOf("s3://b/2"), "https://2");
  EXPECT_FALSE(urls_.Ended(other_, kStart));
}

TEST_F(LeaseUrlsTest, TheyEnd) {
  EXPECT_TRUE(urls_.Ended(first_, kStart)) << "there was none yet";
  urls_.Want(1, {first_}, kStart);
  urls_.Take(1, UrlsFor(60, {"https://1"}), kStart);
  EXPECT_FALSE(urls_.Ended(first_, kStart + seconds(59)));
  EXPECT_TRUE(urls_.Ended(first_, kStart + seconds(61)));
}

TEST_F(LeaseUrlsTest, WhyThereAreNoneIsKept) {
  job::ObjectUrls none;
  none.why = "no keys";
  urls_.Take(1, none, kStart);
  EXPECT_EQ(urls_.why(), "no keys");
  EXPECT_TRUE(urls_.None(1));
  EXPECT_FALSE(urls_.None(2));
  urls_.Take(1, UrlsFor(60, {"https://1"}), kStart);
  EXPECT_EQ(urls_.why(), "");
  EXPECT_FALSE(urls_.None(1));
}

TEST_F(LeaseUrlsTest, OfWhatWasLetGoNothingIsKept) {
  urls_.Take(1, UrlsFor(60, {"https://1"}), kStart);
  urls_.LetGo(1);
  urls_.Want(1, {first_}, kStart);
  EXPECT_EQ(UrlOf("s3://b/1"), "");
}

}  // namespace
}  // namespace parallelrun::agent
