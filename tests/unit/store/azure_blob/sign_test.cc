// Shared Key and its like. The signatures were computed by another implementation (hmac and base64
// of Python); on a real server it is tests/integration/test_azure_blob.py.
#include "store/azure_blob/sign.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/objects/http_date.h"

namespace parallelrun::store::azure_blob {
namespace {

const WallTime kTime{seconds(1435361952)};  // 2015-06-26T23:39:12Z

HttpRequest Signed(HttpRequest request, const Proof& proof) {
  Sign(request, proof, kTime);
  return request;
}

TEST(AzureSign, AListByTheAccountsKey) {
  HttpRequest request;
  request.path = "/mycontainer";
  request.query = "restype=container&comp=list&include=metadata&prefix=a%20b%2F";
  const HttpRequest sent = Signed(request, SharedKey{"myaccount", "a key of the tests"});
  EXPECT_EQ(StringToSign(sent, "myaccount"),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n"
            "x-ms-version:2021-12-02\n/myaccount/mycontainer\ncomp:list\ninclude:metadata\n"
            "prefix:a b/\nrestype:container");
  EXPECT_EQ(sent.Header("Authorization"),
            "SharedKey myaccount:X3zHsNLNSv6YuBCmBL4z/lRp8uLjoxQk8JRH0Ae8Xz4=");
}

TEST(AzureSign, ARangeOfAVersionByTheAccountsKey) {
  HttpRequest request;
  request.path = "/mycontainer/a%20b/%C3%BC.txt";
  request.headers = {{"Range", "bytes=0-9"}, {"If-Match", "\"0x8D1\""}};
  EXPECT_EQ(Signed(request, SharedKey{"myaccount", "a key of the tests"}).Header("Authorization"),
            "SharedKey myaccount:rtbGnhovg6/SFFerMeQdOtmBn32n4u/TZMKkcLJlvFc=");
}

TEST(AzureSign, ASasGoesIntoTheQueryAndATokenIntoAHeader) {
  HttpRequest request;
  request.query = "comp=list";
  EXPECT_EQ(Signed(request, Sas{"sv=1&sig=2"}).query, "comp=list&sv=1&sig=2");
  EXPECT_EQ(Signed(request, Sas{"sv=1&sig=2"}).Header("Authorization"), "");
  EXPECT_EQ(Signed(request, Bearer{"t"}).Header("Authorization"), "Bearer t");
  EXPECT_EQ(Signed(HttpRequest{}, Sas{"sv=1&sig=2"}).query, "sv=1&sig=2");
}

TEST(HttpDates, AreReadAsTheyAreWritten) {
  EXPECT_EQ(HttpDate(kTime), "Fri, 26 Jun 2015 23:39:12 GMT");
  EXPECT_EQ(ParseHttpDate("Fri, 26 Jun 2015 23:39:12 GMT"), kTime);
  for (const char* wrong : {"", "Fri, 26 Jun 2015", "Fri, 26 Jun 2015 23:39:12 CET"}) {
    EXPECT_FALSE(ParseHttpDate(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace parallelrun::store::azure_blob
