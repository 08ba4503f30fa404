// Parts of uploads that are sent by URLs which somebody else has signed.
#include "store/s3/url_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/memory_file.h"
#include "tests/unit/store/s3/small_s3.h"

namespace parallelrun::store::s3 {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kOfPart = "/bucket/in/a?partNumber=1&uploadId=u&X-Amz-Signature=5ec2e7";

class S3UrlPartsTest : public testing::Test {
 protected:
  static Result<std::string> Put(const SmallS3& server) {
    UrlStoreOptions options;
    options.url = "s3://bucket/in";
    options.limits.shortest = milliseconds(1);
    options.limits.longest = milliseconds(2);
    options.limits.most = 2;
    const auto putter = MakePartPutter(options, std::make_shared<SystemClock>());
    EXPECT_TRUE(putter.ok()) << putter.error().message;
    const Result<Fd> file = MemoryFile("part", "0123456789");
    EXPECT_TRUE(file.ok()) << file.error().message;
    return (*putter)->Put("a", server.url() + kOfPart, {file->get(), 2, 5}, {});
  }
};

TEST_F(S3UrlPartsTest, SomeBytesOfAFileAreSentWithoutKeysAndTheirEtagIsTold) {
  size_t puts = 0;
  SmallS3 server([&puts](PlainConnection& connection, const Heard&, size_t) {
    connection.Write(puts++ == 0 ? SmallS3::Reply(503, SmallS3::ErrorXml("SlowDown"))
                                 : SmallS3::Reply(200, "", "ETag: \"p1\"\r\n"));
    return true;
  });
  const Result<std::string> etag = Put(server);
  ASSERT_TRUE(etag.ok()) << etag.error().message;
  EXPECT_EQ(*etag, "p1");
  ASSERT_EQ(server.heard().size(), 2u);
  for (const Heard& heard : server.heard()) {
    EXPECT_EQ(heard.method, "PUT");
    EXPECT_EQ(heard.query, "partNumber=1&uploadId=u&X-Amz-Signature=5ec2e7");
    EXPECT_EQ(heard.body, "23456");
    EXPECT_EQ(heard.Header("Authorization"), "");
  }
}

TEST_F(S3UrlPartsTest, WhatItMeetsIsToldWithoutTheUrl) {
  const struct {
    int status;
    std::string body;
    Code error;
    std::string words;
  } ends[] = {
      {403, "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>",
       Code::kStale, "the URL that a part is sent by has ended"},
      {404, SmallS3::ErrorXml("NoSuchUpload"), Code::kNotFound, "the upload is not there any more"},
      {403, SmallS3::ErrorXml("AccessDenied"), Code::kPermission,
       "s3:PutObject is missing on arn:aws:s3:::bucket/in/a: grant it to the keys of the"},
      {500, SmallS3::ErrorXml("InternalError"), Code::kUnavailable, "overloaded or broken"},
      {200, "", Code::kInvalid, "gives a part no ETag"},
  };
  for (const auto& end : ends) {
    SmallS3 server([&end](PlainConnection& connection, const Heard&, size_t) {
      connection.Write(SmallS3::Reply(end.status, end.body));
      return true;
    });
    const Result<std::string> etag = Put(server);
    ASSERT_FALSE(etag.ok());
    EXPECT_EQ(etag.error().code, end.error) << etag.error().message;
    EXPECT_THAT(etag.error().message, HasSubstr(end.words));
    EXPECT_THAT(etag.error().message, Not(HasSubstr("5ec2e7")));
  }
}

}  // namespace
}  // namespace parallelrun::store::s3
