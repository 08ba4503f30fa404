// What goes wrong between us and a store: it is overloaded, cuts its answers, is silent, answers
// 200 with an error; credentials end, clocks differ, a bucket is elsewhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <string>
#include <vector>

#include "tests/unit/store/s3/small_s3.h"

namespace parallelrun::store::s3 {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The region and the time of a signature.
std::string SignedRegion(const Heard& heard) {
  const std::string value = heard.Header("Authorization");  // …/20150830/REGION/s3/aws4_request, …
  const size_t end = value.find("/s3/aws4_request");
  const size_t begin = value.rfind('/', end - 1) + 1;
  return value.substr(begin, end - begin);
}

TEST(S3BadDays, ABurstOfRefusalsIsWaitedOut) {
  SmallS3 server([](PlainConnection& connection, const Heard&, size_t number) {
    const int status = number % 2 == 0 ? 503 : 500;
    return number < 5 && connection.Write(SmallS3::Reply(status, SmallS3::ErrorXml("SlowDown")));
  });
  server.Put("a", "1");
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server))).names, ElementsAre("a"));
  EXPECT_EQ(server.heard().size(), 6u);
}

TEST(S3BadDays, HowOftenItThrottledIsCountedWhileItIsAsked) {
  SmallS3 server([](PlainConnection& connection, const Heard&, size_t number) {
    if (number < 2) return connection.Write(SmallS3::Reply(503, SmallS3::ErrorXml("SlowDown")));
    return number == 2 && connection.Write(SmallS3::Reply(500, SmallS3::ErrorXml("InternalError")));
  });
  server.Put("a", "1");
  const auto store = StoreAt(QuickOptions(server));
  EXPECT_EQ(store->CountAnswers().all, 0u);
  EXPECT_THAT(ListAll(*store).names, ElementsAre("a"));
  EXPECT_EQ(store->CountAnswers().throttled, 2u);
  EXPECT_EQ(store->CountAnswers().all, 4u);
}

TEST(S3BadDays, AStoreThatStaysOverloadedIsToldSo) {
  SmallS3 server([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallS3::Reply(503, SmallS3::ErrorXml("SlowDown")));
  });
  StoreOptions options = QuickOptions(server);
  options.limits.most = 4;
  const auto stat = StoreAt(options)->Stat("a");
  ASSERT_FALSE(stat.ok());
  EXPECT_EQ(stat.error().code, Code::kUnavailable);
  EXPECT_THAT(stat.error().message, HasSubstr("overloaded or broken; sent 5 times in vain"));
  EXPECT_EQ(server.heard().size(), 5u);
}

TEST(S3BadDays, ACutBodyIsReadAgainFromItsBegin) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t number) {
    return heard.method == "GET" && number < 3 &&
           connection.Write(
               "HTTP/1.1 206 X\r\nContent-Range: bytes 0-9/10\r\n"
               "Content-Length: 10\r\n\r\nxxxxxxx");
  });
  server.CloseAfterScript();
  server.Put("a", "0123456789");
  const auto store = StoreAt(QuickOptions(server));
  const auto object = store->Open("a");
  std::string bytes(10, '?');
  const Result<size_t> read = (*object)->ReadAt(0, bytes);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(bytes, "0123456789");
  EXPECT_EQ(server.heard().size(), 4u);
}

TEST(S3BadDays, AnAnswerThatIsShortButWholeIsNotTakenForAll) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t number) {
    return heard.method == "GET" && number < 2 &&
           connection.Write(SmallS3::Reply(206, "xxx", "Content-Range: bytes 0-9/10\r\n"));
  });
  server.Put("a", "0123456789");
  const auto store = StoreAt(QuickOptions(server));
  std::string bytes(10, '?');
  ASSERT_TRUE((*store->Open("a"))->ReadAt(0, bytes).ok());
  EXPECT_EQ(bytes, "0123456789");
}

TEST(S3BadDays, ASilentServerIsAskedAgain) {
  SmallS3 server([](PlainConnection& connection, const Heard&, size_t number) {
    if (number > 0) return false;
    connection.WaitForClient();
    return true;
  });
  server.Put("a", "1");
  StoreOptions options = QuickOptions(server);
  options.first_byte = milliseconds(300);  // and on a busy machine there are many tries
  options.limits.most = 100;
  EXPECT_THAT(ListAll(*StoreAt(options)).names, ElementsAre("a"));
  EXPECT_GE(server.heard().size(), 2u);
}

TEST(S3BadDays, AnErrorUnderStatus200IsAnError) {
  SmallS3 server([](PlainConnection& connection, const Heard&, size_t number) {
    return number == 0 && connection.Write(SmallS3::Reply(200, SmallS3::ErrorXml("InternalError")));
  });
  server.Put("a", "1");
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server))).names, ElementsAre("a"));
  SmallS3 strange([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallS3::Reply(200, SmallS3::ErrorXml("Strange")));
  });
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(strange))).error, HasSubstr("200 Strange"));
  EXPECT_EQ(strange.heard().size(), 1u);
}

TEST(S3BadDays, AnObjectThatLooksLikeAnErrorIsJustRead) {
  SmallS3 server;
  const std::string bytes = SmallS3::ErrorXml("InternalError");
  server.Put("a", bytes);
  std::string read(bytes.size(), '?');
  const auto store = StoreAt(QuickOptions(server));
  ASSERT_TRUE((*store->Open("a"))->ReadAt(0, read).ok());
  EXPECT_EQ(read, bytes);
}

TEST(S3BadDays, CredentialsThatEndedAreRenewedOnce) {
  SmallS3 giver([](PlainConnection& connection, const Heard&, size_t number) {
    return connection.Write(SmallS3::Reply(
        200, fmt::format(R"({{"AccessKeyId":"ASIA{}","SecretAccessKey":"{}","Token":"t{}"}})",
                         number, kSecret, number)));
  });
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    const bool old = heard.Header("Authorization").find("ASIA0") != std::string::npos;
    // Without a body, as a HEAD is refused: only a GET tells why.
    const std::string body = heard.method == "HEAD" ? "" : SmallS3::ErrorXml("ExpiredToken");
    return old && connection.Write(SmallS3::Reply(400, body));
  });
  server.Put("a", "1");
  Surroundings around;
  around.variables = {{"AWS_CONTAINER_CREDENTIALS_FULL_URI", giver.url() + "/keys"}};
  const auto stat = StoreAt(QuickOptions(server), around)->Stat("a");
  ASSERT_TRUE(stat.ok()) << stat.error().message;
  EXPECT_TRUE(*stat);
  EXPECT_EQ(giver.heard().size(), 2u);
  EXPECT_EQ(server.heard().back().Header("X-Amz-Security-Token"), "t1");
}

TEST(S3BadDays, FixedKeysThatEndedAreToldWithTheirPlace) {
  SmallS3 server([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallS3::Reply(
        400, SmallS3::ErrorXml("ExpiredToken", std::string("<Token-0>") + kSecret + "</Token-0>")));
  });
  const AllNames all = ListAll(*StoreAt(QuickOptions(server)));
  EXPECT_THAT(all.error, HasSubstr("AWS_ACCESS_KEY_ID of the environment (AKIA…MPLE)"));
  EXPECT_THAT(all.error, Not(HasSubstr(kSecret)));
  EXPECT_EQ(server.heard().size(), 2u);
}

TEST(S3BadDays, TheServersClockIsTakenOver) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    const bool right = heard.Header("X-Amz-Date").starts_with("20150830T");
    const std::string body = SmallS3::ErrorXml("RequestTimeTooSkewed");
    return !right &&
           connection.Write(SmallS3::Reply(403, body, "Date: Sun, 30 Aug 2015 12:36:00 GMT\r\n"));
  });
  server.Put("a", "1");
  const auto store = StoreAt(QuickOptions(server));
  EXPECT_THAT(ListAll(*store).names, ElementsAre("a"));
  EXPECT_EQ(server.heard().size(), 2u);
  EXPECT_THAT(ListAll(*store).names, ElementsAre("a"));  // and it is kept
  EXPECT_EQ(server.heard().size(), 3u);
}

TEST(S3BadDays, AClockThatCannotBeTakenOverIsToldSo) {
  SmallS3 server([](PlainConnection& connection, const Heard&, size_t) {
    return connection.Write(SmallS3::Reply(403, SmallS3::ErrorXml("RequestTimeTooSkewed")));
  });
  EXPECT_THAT(ListAll(*StoreAt(QuickOptions(server))).error, HasSubstr("set it by NTP"));
}

TEST(S3BadDays, ABucketElsewhereIsFollowedOnce) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    const bool right = SignedRegion(heard) == "eu-west-1";
    const std::string body =
        SmallS3::ErrorXml("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>");
    return !right && connection.Write(SmallS3::Reply(400, body));
  });
  server.Put("a", "1");
  const auto store = StoreAt(QuickOptions(server));
  EXPECT_THAT(ListAll(*store).names, ElementsAre("a"));
  EXPECT_THAT(ListAll(*store).names, ElementsAre("a"));
  EXPECT_EQ(server.heard().size(), 3u);
}

TEST(S3BadDays, AHeadIsFollowedByItsHeaderAlone) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    return SignedRegion(heard) != "eu-west-1" &&
           connection.Write(SmallS3::Reply(301, "", "x-amz-bucket-region: eu-west-1\r\n"));
  });
  server.Put("a", "1");
  const auto stat = StoreAt(QuickOptions(server))->Stat("a");
  ASSERT_TRUE(stat.ok()) << stat.error().message;
  EXPECT_TRUE(*stat);
}

TEST(S3BadDays, NobodyIsSentInCircles) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    const char* other = SignedRegion(heard) == "eu-west-1" ? "eu-west-2" : "eu-west-1";
    return connection.Write(SmallS3::Reply(301, SmallS3::ErrorXml("PermanentRedirect"),
                                           fmt::format("x-amz-bucket-region: {}\r\n", other)));
  });
  const auto store = StoreAt(QuickOptions(server));
  EXPECT_THAT(ListAll(*store).error, HasSubstr("the bucket is not in region eu-west-1"));
  EXPECT_EQ(server.heard().size(), 2u);
  ListAll(*store);
  EXPECT_EQ(server.heard().size(), 3u);
}

TEST(S3BadDays, ManyThreadsAreAllFollowedAndMendedAtOnce) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t number) {
    if (SignedRegion(heard) != "eu-west-1") {
      return connection.Write(SmallS3::Reply(301, "", "x-amz-bucket-region: eu-west-1\r\n"));
    }
    return number % 5 == 0 && connection.Write(SmallS3::Reply(503, ""));
  });
  server.Put("a", "0123456789");
  const auto store = StoreAt(QuickOptions(server));
  std::vector<std::future<std::string>> readers;
  for (size_t i = 0; i < 8; ++i) {
    readers.push_back(std::async(std::launch::async, [&store, i] {
      const auto object = store->Open("a");
      if (!object.ok()) return object.error().message;
      std::string bytes(2, '?');
      const Result<size_t> read = (*object)->ReadAt(i, bytes);
      return read.ok() ? bytes : read.error().message;
    }));
  }
  for (size_t i = 0; i < readers.size(); ++i) {
    EXPECT_EQ(readers[i].get(), std::string("0123456789").substr(i, 2));
  }
}

TEST(S3BadDays, AStopEndsAWait) {
  std::latch refused(1);
  SmallS3 server([&](PlainConnection& connection, const Heard&, size_t number) {
    connection.Write(SmallS3::Reply(503, "", "Retry-After: 100000\r\n"));
    if (number == 0) refused.count_down();
    return true;
  });
  std::stop_source source;
  StoreOptions options = QuickOptions(server);
  options.stop = source.get_token();
  options.limits.longest = options.limits.in_all = seconds(1'000'000);
  const auto store = StoreAt(options);
  auto stat = std::async(std::launch::async, [&] { return store->Stat("a"); });
  refused.wait();
  source.request_stop();
  const auto result = stat.get();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kUnavailable);
  EXPECT_EQ(store->Stat("a").error().message, "s3://bucket: stopped");
  EXPECT_EQ(server.heard().size(), 1u);
}

TEST(S3BadDays, AStopEndsARequest) {
  std::latch heard(1);
  SmallS3 server([&](PlainConnection& connection, const Heard&, size_t) {
    heard.count_down();
    connection.WaitForClient();
    return true;
  });
  std::stop_source source;
  StoreOptions options = QuickOptions(server);
  options.stop = source.get_token();
  options.first_byte = seconds(1000);
  const auto store = StoreAt(options);
  auto stat = std::async(std::launch::async, [&] { return store->Stat("a"); });
  heard.wait();
  source.request_stop();
  EXPECT_EQ(stat.get().error().message, "s3://bucket: stopped");
}

TEST(S3BadDays, NobodyThere) {
  std::string url;
  {
    const SmallS3 gone;
    url = gone.url();
  }
  SmallS3 unused;
  StoreOptions options = QuickOptions(unused);
  options.endpoint = url;
  options.limits.most = 2;
  EXPECT_THAT(ListAll(*StoreAt(options)).error,
              testing::AllOf(HasSubstr("sent 3 times"), HasSubstr("check the network")));
}

TEST(S3BadDays, NoMessageHoldsASecret) {
  for (const int status : {301, 400, 401, 403, 404, 409, 412, 416, 500, 503}) {
    SmallS3 server([&](PlainConnection& connection, const Heard&, size_t) {
      return connection.Write(SmallS3::Reply(status, ""));
    });
    StoreOptions options = QuickOptions(server);
    options.limits.most = 0;
    Surroundings around = StaticKeys();
    around.variables["AWS_SESSION_TOKEN"] = "session-token-of-mine";
    const AllNames all = ListAll(*StoreAt(options, around));
    EXPECT_THAT(all.error, Not(HasSubstr(kSecret))) << status;
    EXPECT_THAT(all.error, Not(HasSubstr("session-token"))) << status;
    EXPECT_THAT(all.error, Not(HasSubstr("AKIAIOSFODNN7EXAMPLE"))) << status;
    EXPECT_NE(all.error, "") << status;
  }
}

}  // namespace
}  // namespace parallelrun::store::s3
