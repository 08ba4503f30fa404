// Signatures: the published cases of Signature Version 4, and those that S3's own description works
// out in full.
#include "store/s3/sign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/s3/timestamps.h"

namespace parallelrun::store::s3 {
namespace {

constexpr const char* kSuiteHost = "example.amazonaws.com";
constexpr const char* kBucketHost = "examplebucket.s3.amazonaws.com";

HttpRequest Signable(const std::string& method, const std::string& path, const std::string& query,
                     HttpHeaders headers = {}, std::string body = "") {
  HttpRequest request;
  request.method = method;
  request.path = path;
  request.query = query;
  request.headers = std::move(headers);
  request.body = std::move(body);
  return request;
}

// Of the suite: keys, region, service and time are the same in all of it.
std::string SuiteSignature(HttpRequest request, const std::string& token = "") {
  Sign(request, kSuiteHost, {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token},
       {"us-east-1", "service"}, *ParseIsoTime("2015-08-30T12:36:00Z"));
  const std::string_view value = request.Header("Authorization");
  EXPECT_TRUE(value.starts_with(
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "));
  return std::string(value.substr(value.find("Signature=") + 10));
}

// Of S3's description.
HttpRequest BucketSigned(HttpRequest request) {
  Sign(request, kBucketHost,
       {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""},
       {"us-east-1", "s3"}, *ParseIsoTime("2013-05-24T00:00:00Z"));
  return request;
}

struct SuiteCase {
  const char* name;
  HttpRequest request;
  const char* signature;
};

TEST(S3Sign, ThePublishedCases) {
  const std::string unreserved =
      "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const std::vector<SuiteCase> cases{
      {"get-vanilla", Signable("GET", "/", ""),
       "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
      {"post-vanilla", Signable("POST", "/", ""),
       "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
      {"get-vanilla-query-order-key-case", Signable("GET", "/", "Param2=value2&Param1=value1"),
       "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
      {"get-vanilla-query-order-encoded",
       Signable("GET", "/", "Param-3=Value3&Param=Value2&%E1%88%B4=Value1"),
       "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac"},
      {"get-vanilla-empty-query-key", Signable("GET", "/", "Param1=value1"),
       "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb"},
      {"get-vanilla-utf8-query", Signable("GET", "/", "%E1%88%B4=bar"),
       "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
      {"get-unreserved", Signable("GET", "/" + unreserved, ""),
       "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
      {"get-utf8", Signable("GET", "/%E1%88%B4", ""),
       "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
      {"get-space-unnormalized", Signable("GET", "/example%20space/", ""),
       "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741"},
      {"get-slashes-unnormalized", Signable("GET", "//example//", ""),
       "87cca117541a147f6df867677d98a7d80dff226d2bfca9e4ffa899665623c7e5"},
      {"get-header-value-trim",
       Signable("GET", "/", "", {{"My-Header1", " value1"}, {"My-Header2", " \"a   b   c\""}}),
       "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
  };
  for (const SuiteCase& one : cases) {
    EXPECT_EQ(SuiteSignature(one.request), one.signature) << one.name;
  }
}

TEST(S3Sign, TheTextsBetweenAreThePublishedOnesToo) {
  HttpRequest request = Signable("GET", "/", "");
  request.headers = {{"X-Amz-Date", "20150830T123600Z"}};
  const std::string canonical = CanonicalRequest(request, kSuiteHost);
  EXPECT_EQ(canonical,
            "GET\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n"
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(
      StringToSign(canonical, {"us-east-1", "service"}, *ParseIsoTime("2015-08-30T12:36:00Z")),
      "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/service/aws4_request\n"
      "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63");
}

TEST(S3Sign, TheTokenOfASessionIsSigned) {
  EXPECT_EQ(SuiteSignature(Signable("GET", "/", ""),
                           "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"),
            "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8");
}

TEST(S3Sign, TheExamplesOfS3) {
  const auto signature = [](const HttpRequest& request) {
    const std::string_view value = request.Header("Authorization");
    return std::string(value.substr(value.find("Signature=") + 10));
  };
  const HttpRequest get = BucketSigned(Signable("GET", "/test.txt", "", {{"Range", "bytes=0-9"}}));
  EXPECT_EQ(signature(get), "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(get.Header("X-Amz-Content-Sha256"),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(signature(BucketSigned(Signable("PUT", "/test%24file.text", "",
                                            {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                                             {"X-Amz-Storage-Class", "REDUCED_REDUNDANCY"}},
                                            "Welcome to Amazon S3."))),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(signature(BucketSigned(Signable("GET", "/", "lifecycle"))),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(signature(BucketSigned(Signable("GET", "/", "max-keys=2&prefix=J"))),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

std::string QuerySignature(const HttpRequest& request) {
  return request.query.substr(request.query.find("X-Amz-Signature=") + 16);
}

// The suite has the signature in a URL too, with the token of a session among its parameters.
TEST(S3Presign, ThePublishedCaseWithTheTokenOfASession) {
  HttpRequest request = Signable("GET", "/", "");
  Presign(request, kSuiteHost,
          {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
           "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"},
          {"us-east-1", "service"}, *ParseIsoTime("2015-08-30T12:36:00Z"), seconds(3600));
  EXPECT_EQ(QuerySignature(request),
            "7ff2b50b376cb4d151970630573d6291dc128cc5c2a12ffb237f73cc53f67b6c");
  EXPECT_THAT(request.query,
              testing::HasSubstr("X-Amz-Security-Token="
                                 "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"
                                 "&X-Amz-SignedHeaders=host&X-Amz-Signature="));
  EXPECT_TRUE(request.headers.empty());
}

HttpRequest BucketPresigned(HttpRequest request) {
  Presign(request, kBucketHost,
          {"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", ""},
          {"us-east-1", "s3"}, *ParseIsoTime("2013-05-24T00:00:00Z"), seconds(86400));
  return request;
}

TEST(S3Presign, TheExampleOfS3) {
  const HttpRequest request = BucketPresigned(Signable("GET", "/test.txt", ""));
  EXPECT_EQ(request.query,
            "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2F"
            "us-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&"
            "X-Amz-SignedHeaders=host&X-Amz-Signature="
            "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(S3Presign, AHeaderThatIsThereIsSigned) {
  const HttpRequest request =
      BucketPresigned(Signable("GET", "/test.txt", "", {{"If-Match", "\"abc\""}}));
  EXPECT_THAT(request.query, testing::HasSubstr("X-Amz-SignedHeaders=host%3Bif-match&"));
  EXPECT_EQ(QuerySignature(request),
            "9b72ab828a864e5bbed438834684555e819855db0da0da68750a64c11f983d1b");
  EXPECT_NE(
      QuerySignature(BucketPresigned(Signable("GET", "/test.txt", "", {{"If-Match", "\"abd\""}}))),
      QuerySignature(request));
}

TEST(S3Presign, NeitherABodyNorALaterHeaderIsSigned) {
  HttpRequest request = BucketPresigned(Signable("GET", "/test.txt", "", {}, "a body"));
  EXPECT_EQ(QuerySignature(request),
            "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(S3Presign, AQueryThatIsThereIsSignedToo) {
  const HttpRequest request = BucketPresigned(Signable("GET", "/test.txt", "versionId=3%2FL4kqt"));
  EXPECT_TRUE(request.query.starts_with("versionId=3%2FL4kqt&X-Amz-Algorithm="));
  EXPECT_NE(QuerySignature(request),
            "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404");
}

TEST(S3Timestamps, AreReadAsTheyAreWritten) {
  const std::optional<WallTime> time = ParseIsoTime("2015-08-30T12:36:00Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(CompactTime(*time), "20150830T123600Z");
  EXPECT_EQ(ParseIsoTime("2015-08-30T12:36:00.123Z"), time);
  EXPECT_EQ(ParseIsoTime("2015-08-30T12:36:00+00:00"), time);
  for (const char* wrong : {"", "2015-08-30", "2015-08-30T12:36:00", "2015-08-30T12:36:00+02:00"}) {
    EXPECT_FALSE(ParseIsoTime(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace parallelrun::store::s3
