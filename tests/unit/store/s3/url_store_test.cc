// Objects that are read by URLs which somebody else has signed: what they read, what they do not,
// and what is said when they end.
#include "store/s3/url_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "store/objects/object_version.h"
#include "store/s3/timestamps.h"
#include "store/s3/url_signer.h"
#include "tests/unit/store/s3/small_s3.h"

namespace parallelrun::store::s3 {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class SteppedClock final : public Clock {
 public:
  Instant Now() const override { return now; }
  WallTime WallNow() const override { return wall + (now - Instant()); }
  Instant now{};
  WallTime wall = *ParseIsoTime("2026-11-23T12:00:00Z");
};

class S3UrlStoreTest : public testing::Test {
 protected:
  std::unique_ptr<UrlSigner> SignerAt(const SmallS3& server,
                                      const Surroundings& around = StaticKeys(),
                                      Duration life = kUrlLife) {
    Result<std::unique_ptr<UrlSigner>> made =
        MakeUrlSigner(QuickOptions(server), around, clock_, life);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }
  std::unique_ptr<Store> ReaderOf(const std::string& url = "s3://bucket") {
    UrlStoreOptions options;
    options.url = url;
    options.limits.shortest = milliseconds(1);
    options.limits.longest = milliseconds(2);
    Result<std::unique_ptr<Store>> made = MakeUrlStore(options, urls_, clock_);
    EXPECT_TRUE(made.ok()) << made.error().message;
    return std::move(*made);
  }
  // As its listing would have found it.
  Version VersionAt(const SmallS3& server, const std::string& key) {
    const auto found = StoreAt(QuickOptions(server))->Stat(key);
    EXPECT_TRUE(found.ok() && *found) << key;
    return (*found)->version;
  }
  // The URL of that version is in the table afterwards.
  std::string Give(UrlSigner& signer, const std::string& key, const Version& version) {
    const Result<SignedUrl> url = signer.Sign("s3://bucket/" + key, version);
    EXPECT_TRUE(url.ok()) << url.error().message;
    urls_->Put("s3://bucket/" + key, {url->url, version, clock_->now + url->life}, clock_->now);
    return url->url;
  }
  void Give(const SmallS3& server, const std::string& key) {
    Give(*SignerAt(server), key, VersionAt(server, key));
  }
  static Result<std::string> ReadAll(Object& object) {
    std::string bytes(object.found().size, '?');
    const Result<size_t> read = object.ReadAt(0, bytes);
    if (!read.ok()) return read.error();
    return bytes.substr(0, *read);
  }

  std::shared_ptr<SteppedClock> clock_ = std::make_shared<SteppedClock>();
  std::shared_ptr<UrlTable> urls_ = std::make_shared<UrlTable>();
};

TEST_F(S3UrlStoreTest, AnObjectIsReadWithoutKeys) {
  SmallS3 server;
  server.Put("a b/c+d", "some bytes");
  const Version version = VersionAt(server, "a b/c+d");
  Give(*SignerAt(server), "a b/c+d", version);
  const size_t before = server.heard().size();
  const auto store = ReaderOf("s3://bucket/a b");
  const auto object = store->Open("c+d");
  ASSERT_TRUE(object.ok()) << object.error().message;
  EXPECT_EQ((*object)->found().version, version);
  EXPECT_EQ((*object)->found().size, 10U);
  EXPECT_EQ(*ReadAll(**object), "some bytes");
  ASSERT_EQ(server.heard().size(), before + 1);
  const Heard read = server.heard().back();
  EXPECT_EQ(read.method, "GET");
  EXPECT_EQ(read.Header("Authorization"), "");
  EXPECT_THAT(read.query, AllOf(HasSubstr("X-Amz-Expires=1800&"),
                                HasSubstr("X-Amz-SignedHeaders=host%3Bif-match&"),
                                HasSubstr("X-Amz-Signature="), Not(HasSubstr(kSecret))));
}

TEST_F(S3UrlStoreTest, TheSignerAsksTheStoreOnceAndSignsByItsClockAndRegion) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    // A HEAD's answer has no body that says why, so a GET follows.
    const bool right =
        heard.Header("Authorization").find("/20150830/eu-west-1/s3/") != std::string::npos;
    if (right) return false;
    const bool date = heard.Header("Authorization").find("/20150830/") != std::string::npos;
    const std::string why =
        heard.method == "HEAD" ? ""
        : date ? SmallS3::ErrorXml("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>")
               : SmallS3::ErrorXml("RequestTimeTooSkewed");
    return connection.Write(
        SmallS3::Reply(date ? 400 : 403, why, "Date: Sun, 30 Aug 2015 12:36:00 GMT\r\n"));
  });
  server.Put("a", "1");
  const auto signer = SignerAt(server);
  const Version version = VersionOf("etag", 1);
  const Result<SignedUrl> first = signer->Sign("s3://bucket/a", version);
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_THAT(first->url,
              AllOf(HasSubstr("X-Amz-Date=20150830T123600Z&"), HasSubstr("%2Feu-west-1%2Fs3%2F")));
  const size_t asked = server.heard().size();
  EXPECT_TRUE(signer->Sign("s3://bucket/b", version).ok());
  EXPECT_EQ(server.heard().size(), asked);
}

TEST_F(S3UrlStoreTest, AUrlIsGoodNoLongerThanItsKeys) {
  SmallS3 server;
  server.Put("a", "1");
  SmallS3 keys([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallS3::Reply(
        200, fmt::format(R"({{"AccessKeyId":"ASIA0","SecretAccessKey":"{}","Token":"a/token=",)"
                         R"("Expiration":"2026-11-23T12:20:00Z"}})",
                         kSecret)));
  });
  Surroundings around;
  around.variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", keys.url() + "/keys"}};
  const auto signer = SignerAt(server, around);
  const Result<SignedUrl> url = signer->Sign("s3://bucket/a", VersionOf("etag", 1));
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_EQ(url->life, seconds(20 * 60));
  EXPECT_THAT(url->url, AllOf(HasSubstr("X-Amz-Expires=1200&"),
                              HasSubstr("X-Amz-Security-Token=a%2Ftoken%3D&")));
}

TEST_F(S3UrlStoreTest, WhatIsOutsideOfTheBucketIsNotSigned) {
  SmallS3 server;
  const auto signer = SignerAt(server);
  for (const char* location : {"s3://bucket", "s3://bucket2/a", "s3://other/a", "/bucket/a", ""}) {
    EXPECT_EQ(signer->Sign(location, VersionOf("etag", 1)).error().code, Code::kInvalid);
  }
  EXPECT_TRUE(server.heard().empty());
}

TEST_F(S3UrlStoreTest, AnotherVersionIsNotRead) {
  SmallS3 server;
  for (const char* key : {"a", "b", "empty"}) server.Put(key, *key == 'e' ? "" : "12");
  for (const char* key : {"a", "b", "empty"}) Give(server, key);
  const auto store = ReaderOf();
  const auto a = store->Open("a");
  const auto b = store->Open("b");
  ASSERT_TRUE(a.ok() && b.ok());
  server.Put("a", "34");
  server.Remove("b");
  server.Put("empty", "1");
  EXPECT_EQ(ReadAll(**a).error().code, Code::kStale);
  EXPECT_EQ(ReadAll(**b).error().code, Code::kStale);
  EXPECT_EQ(store->Open("empty").error().code, Code::kStale);
}

TEST_F(S3UrlStoreTest, WhatThePlanKnowsIsReadWithoutALook) {
  SmallS3 server;
  server.Put("a", "0123456789");
  const Version version = VersionAt(server, "a");
  const auto store = ReaderOf();
  const auto object = store->OpenUnseen("a", version);
  ASSERT_TRUE(object);
  EXPECT_EQ(object->found().size, 10U);
  EXPECT_EQ(ReadAll(*object).error().code, Code::kUnavailable) << "nobody has signed one yet";
  Give(server, "a");
  const size_t before = server.heard().size();
  std::string bytes(3, '?');
  ASSERT_EQ(*object->ReadAt(4, bytes), 3U);
  EXPECT_EQ(bytes, "456") << "which bytes are wanted is not signed";
  ASSERT_EQ(server.heard().size(), before + 1);
  EXPECT_EQ(server.heard().back().Header("Range"), "bytes=4-6");

  EXPECT_FALSE(store->OpenUnseen("a", WithoutSize(version))) << "as earlier releases planned it";
  EXPECT_FALSE(store->OpenUnseen("a", VersionOf("another", 10))) << "its URL reads this one";
  EXPECT_FALSE(store->OpenUnseen("b", VersionOf("etag", 0)));
}

TEST_F(S3UrlStoreTest, AnEmptyObjectAndThoseOfPlansThatTellNoSize) {
  SmallS3 server;
  server.Put("empty", "");
  server.Put("full", "12345");
  const auto signer = SignerAt(server);
  const auto store = ReaderOf();
  Give(*signer, "empty", VersionAt(server, "empty"));
  EXPECT_EQ((*store->Open("empty"))->found().size, 0U);
  for (const char* key : {"empty", "full"}) {
    const Version version = VersionAt(server, key);
    Give(*signer, key, WithoutSize(version));
    const auto object = store->Open(key);
    ASSERT_TRUE(object.ok()) << object.error().message;
    EXPECT_EQ((*object)->found().size, *key == 'e' ? 0U : 5U);
    EXPECT_EQ((*object)->found().version, version);
    EXPECT_TRUE(store->IsStill(WithoutSize(version), (*object)->found().version));
  }
}

// A manifest may name what is not there yet.
TEST_F(S3UrlStoreTest, OfWhatWasNotThereWhateverIsThereIsRead) {
  SmallS3 server;
  const auto signer = SignerAt(server);
  const auto store = ReaderOf();
  const std::string url = Give(*signer, "late", Version(std::string(kNoObject)));
  EXPECT_THAT(url, HasSubstr("X-Amz-SignedHeaders=host&"));
  EXPECT_EQ(store->Open("late").error().code, Code::kNotFound);
  EXPECT_FALSE(store->OpenUnseen("late", Version(std::string(kNoObject))));
  for (const std::string bytes : {"12345", ""}) {
    server.Put("late", bytes);
    const auto object = store->Open("late");
    ASSERT_TRUE(object.ok()) << object.error().message;
    EXPECT_EQ((*object)->found().version, VersionAt(server, "late"));
    EXPECT_EQ(*ReadAll(**object), bytes);
  }
  // From its first byte on it is one version.
  server.Put("late", "12345");
  const auto object = store->Open("late");
  ASSERT_TRUE(object.ok());
  server.Put("late", "67890");
  EXPECT_EQ(ReadAll(**object).error().code, Code::kStale);
}

TEST_F(S3UrlStoreTest, OneWhoseTimeIsOverIsNotSent) {
  SmallS3 server;
  server.Put("a", "12");
  Give(server, "a");
  const auto store = ReaderOf();
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok());
  clock_->now += kUrlLife;
  const size_t before = server.heard().size();
  EXPECT_EQ(ReadAll(**object).error().code, Code::kUnavailable);
  EXPECT_EQ(store->Open("a").error().code, Code::kUnavailable);
  EXPECT_EQ(server.heard().size(), before);
  // A new one serves the same object.
  Give(server, "a");
  EXPECT_EQ(*ReadAll(**object), "12");
}

TEST_F(S3UrlStoreTest, ASignerMaySignForLess) {
  SmallS3 server;
  server.Put("a", "12");
  const auto signer = SignerAt(server, StaticKeys(), seconds(5));
  const Result<SignedUrl> url = signer->Sign("s3://bucket/a", VersionAt(server, "a"));
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_EQ(url->life, seconds(5));
  EXPECT_THAT(url->url, HasSubstr("X-Amz-Expires=5&"));
}

TEST_F(S3UrlStoreTest, OneThatTheStoreEndsIsAskedForAnewAndAnyOtherRefusalIsFinal) {
  struct Case {
    int status;
    const char* body;
    Code code;
  };
  const Case cases[] = {
      {403, "<Error><Code>AccessDenied</Code><Message>Request has expired.</Message></Error>",
       Code::kUnavailable},
      {400, "<Error><Code>ExpiredToken</Code><Message>m</Message></Error>", Code::kUnavailable},
      {403, "<Error><Code>InvalidAccessKeyId</Code><Message>m</Message></Error>",
       Code::kUnavailable},
      {403, "<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
       Code::kPermission},
      {403, "<Error><Code>SignatureDoesNotMatch</Code><Message>m</Message></Error>",
       Code::kPermission},
  };
  for (const Case& one : cases) {
    SmallS3 server([&](PlainConnection& connection, const Heard& heard, size_t) {
      return heard.query.find("X-Amz-Signature") != std::string::npos &&
             connection.Write(SmallS3::Reply(one.status, one.body));
    });
    server.Put("a", "12");
    Give(server, "a");
    const auto store = ReaderOf();
    const auto opened = store->Open("a");
    ASSERT_TRUE(opened.ok());
    const size_t before = server.heard().size();
    const Error error = ReadAll(**opened).error();
    EXPECT_EQ(error.code, one.code) << one.body;
    EXPECT_THAT(error.message,
                AllOf(HasSubstr("s3://bucket/a"), Not(HasSubstr("X-Amz-")), Not(HasSubstr("?"))));
    EXPECT_EQ(server.heard().size(), before + 1) << one.body;
    const bool counts = urls_->Get("s3://bucket/a", clock_->now).has_value();
    EXPECT_EQ(counts, one.code == Code::kPermission) << one.body;
  }
}

TEST_F(S3UrlStoreTest, AStoreThatIsAwayIsAskedAgainAndSaysNothingOfTheUrl) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    return heard.query.find("X-Amz-Signature") != std::string::npos &&
           connection.Write(SmallS3::Reply(503, SmallS3::ErrorXml("SlowDown")));
  });
  server.Put("a", "12");
  Give(server, "a");
  const auto store = ReaderOf();
  const auto object = store->Open("a");
  ASSERT_TRUE(object.ok());
  const Error error = ReadAll(**object).error();
  EXPECT_EQ(error.code, Code::kUnavailable);
  EXPECT_THAT(error.message, AllOf(Not(HasSubstr("X-Amz-")), Not(HasSubstr("AKIA"))));
  EXPECT_TRUE(urls_->Get("s3://bucket/a", clock_->now));
}

TEST_F(S3UrlStoreTest, NoMessageHasAUrlThoughTheServerRepeatsIt) {
  for (const int status : {400, 403, 404, 409, 412, 416, 500, 503}) {
    SmallS3 server([status](PlainConnection& connection, const Heard& heard, size_t) {
      if (heard.query.find("X-Amz-Signature") == std::string::npos) return false;
      const std::string said = "/bucket/a?X-Amz-Signature=" + heard.query;
      return connection.Write(
          SmallS3::Reply(status, "<Error><Code>Odd " + said + "</Code><Message>cannot serve " +
                                     said + "</Message><Region>" + said + "</Region></Error>"));
    });
    server.Put("a", "12");
    server.Put("empty", "");
    for (const char* key : {"a", "empty"}) Give(server, key);
    const auto store = ReaderOf();
    const auto object = store->Open("a");
    ASSERT_TRUE(object.ok());
    for (const Error& error : {ReadAll(**object).error(), store->Open("empty").error()}) {
      EXPECT_THAT(error.message, AllOf(HasSubstr("s3://bucket/"), Not(HasSubstr("X-Amz-")),
                                       Not(HasSubstr("AKIA"))))
          << status;
    }
  }
}

TEST_F(S3UrlStoreTest, AUrlThatLeadsNowhereIsInNoMessage) {
  for (const char* place : {"https://127.0.0.1:1/bucket/a", "http://[bad/bucket/a", "https://h[",
                            "ftp://h/bucket/a", "/bucket/a", ":///bucket/a", ""}) {
    const std::string url = std::string(place) + "?X-Amz-Signature=1";
    urls_->Put("s3://bucket/a", {url, VersionOf("etag", 2), clock_->now + seconds(60)},
               clock_->now);
    const auto store = ReaderOf();
    const auto object = store->OpenUnseen("a", VersionOf("etag", 2));
    ASSERT_TRUE(object);
    const Result<std::string> read = ReadAll(*object);
    ASSERT_FALSE(read.ok()) << place;
    EXPECT_THAT(read.error().message, Not(HasSubstr("X-Amz-"))) << place;
  }
}

TEST_F(S3UrlStoreTest, ItListsNothing) {
  const auto store = ReaderOf();
  EXPECT_EQ(store->IsThere().error().code, Code::kPermission);
  EXPECT_EQ(store->Stat("a").error().code, Code::kPermission);
  EXPECT_EQ(store->List(Everything(), "").error().code, Code::kPermission);
  EXPECT_EQ(store->Open("a").error().code, Code::kUnavailable);
}

TEST(UrlTable, HoldsTheNewestOfEachAndForgetsThoseThatHaveEnded) {
  UrlTable table;
  const Instant begin{};
  const auto entry = [&](const std::string& url, Duration life) {
    return UrlTable::Entry{url, Version("v"), begin + life};
  };
  table.Put("a", entry("1", seconds(10)), begin);
  table.Put("a", entry("2", seconds(20)), begin);
  EXPECT_EQ(table.Get("a", begin + seconds(19))->url, "2");
  EXPECT_FALSE(table.Get("a", begin + seconds(20)));
  EXPECT_FALSE(table.Get("b", begin));
  table.End("a", "1");  // an older one
  EXPECT_TRUE(table.Get("a", begin));
  table.End("a", "2");
  EXPECT_FALSE(table.Get("a", begin));
  for (int i = 0; i < 3000; ++i) {
    table.Put(std::to_string(i), entry("u", seconds(i + 1)), begin + seconds(i));
  }
  EXPECT_TRUE(table.Get("2999", begin + seconds(2999)));
}

}  // namespace
}  // namespace parallelrun::store::s3
