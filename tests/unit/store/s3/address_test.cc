#include "store/s3/address.h"

#include <gtest/gtest.h>

namespace parallelrun::store::s3 {
namespace {

TEST(S3Address, IsABucketAndPerhapsAPrefix) {
  EXPECT_EQ(ParseAddress("s3://bucket")->prefix, "");
  EXPECT_EQ(ParseAddress("s3://bucket/")->prefix, "");
  for (const char* url : {"s3://bucket/a b/c+d%20", "s3://bucket/a b/c+d%20/"}) {
    const Result<Address> address = ParseAddress(url);
    ASSERT_TRUE(address.ok());
    EXPECT_EQ(address->bucket, "bucket");
    EXPECT_EQ(address->prefix, "a b/c+d%20");
  }
}

TEST(S3Address, NamesAreKeysWithoutThePrefix) {
  const Address all{"bucket", ""};
  EXPECT_EQ(all.KeyOf("a/b"), "a/b");
  EXPECT_EQ(all.NameOf("a/b"), "a/b");
  EXPECT_EQ(all.Url(""), "s3://bucket");
  EXPECT_EQ(all.Url("a/b"), "s3://bucket/a/b");
  const Address below{"bucket", "in"};
  EXPECT_EQ(below.KeyOf(""), "in/");
  EXPECT_EQ(below.KeyOf("a/b"), "in/a/b");
  EXPECT_EQ(below.NameOf("in/a/b"), "a/b");
  EXPECT_EQ(below.Url(""), "s3://bucket/in");
  EXPECT_EQ(below.Url("a"), "s3://bucket/in/a");
}

TEST(S3Address, WhatIsNoBucketIsRefusedInWords) {
  const auto why = [](const std::string& url) {
    const Result<Address> address = ParseAddress(url);
    return address.ok() ? "" : address.error().message;
  };
  for (const char* url : {"bucket/a", "https://bucket/a", "s3:/bucket", "s3://", "s3:///a",
                          "s3://ab", "s3://a..b", "s3://-ab", "s3://a b", "s3://user@host/a"}) {
    EXPECT_NE(why(url).find("write s3://BUCKET/PREFIX"), std::string::npos) << url;
  }
  EXPECT_NE(why("s3://arn:aws:s3:eu:1:accesspoint/x").find("alias"), std::string::npos);
  EXPECT_NE(why("s3://name--euw1-az1--x-s3").find("in order"), std::string::npos);
  EXPECT_NE(why("s3://bucket/" + std::string(2000, 'a')).find("1,024"), std::string::npos);
}

TEST(S3Address, AwsIsAskedInTheHostsNameAndOthersInThePath) {
  const Result<Server> aws = ServerOf("bucket", "eu-central-1", "", std::nullopt);
  ASSERT_TRUE(aws.ok());
  EXPECT_EQ(aws->url, "https://bucket.s3.eu-central-1.amazonaws.com");
  EXPECT_EQ(aws->host, "bucket.s3.eu-central-1.amazonaws.com");
  EXPECT_EQ(aws->path_prefix, "");
  EXPECT_EQ(ServerOf("bucket", "cn-north-1", "", Style::kPath)->url,
            "https://s3.cn-north-1.amazonaws.com.cn");
  // "*.s3.…" in a certificate does not cover a name with one more dot.
  EXPECT_EQ(ServerOf("a.bucket", "eu-central-1", "", std::nullopt)->path_prefix, "/a.bucket");
  const Result<Server> own = ServerOf("bucket", "x", "http://127.0.0.1:7070/", std::nullopt);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->url, "http://127.0.0.1:7070");
  EXPECT_EQ(own->host, "127.0.0.1:7070");
  EXPECT_EQ(own->path_prefix, "/bucket");
  EXPECT_EQ(ServerOf("bucket", "x", "https://minio.example/s3", Style::kPath)->path_prefix,
            "/s3/bucket");
  EXPECT_EQ(ServerOf("bucket", "x", "https://minio.example:443", Style::kVirtualHost)->host,
            "bucket.minio.example");
}

TEST(S3Address, WhatIsNoServerIsRefused) {
  for (const char* region : {"", "eu central", "a.b", "x/y", "EU"}) {
    EXPECT_EQ(ServerOf("bucket", region, "", std::nullopt).error().code, Code::kInvalid) << region;
  }
  for (const char* endpoint : {"minio:9000", "ftp://x", "http://user@host", "http://x/?a"}) {
    const Result<Server> server = ServerOf("bucket", "x", endpoint, std::nullopt);
    ASSERT_FALSE(server.ok()) << endpoint;
    EXPECT_NE(server.error().message.find("the endpoint"), std::string::npos);
  }
}

}  // namespace
}  // namespace parallelrun::store::s3
