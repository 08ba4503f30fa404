#include "store/url_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace parallelrun::store {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Said(const std::string& url) {
  const Status checked = CheckQuery(url);
  return checked.ok() ? "" : checked.error().message;
}

// A character of a name, and of a glob.
TEST(UrlQuery, AMarkAloneIsNone) {
  for (const char* url :
       {"s3://bucket/in", "s3://bucket/c?.png", "s3://bucket/?ear=2026/*.csv", "s3://bucket/why?",
        "s3://bucket/page?versionIds&id=3", "abfss://photos@data.dfs.core.windows.net/c?.png",
        "in/c?.png?versionId=3", "https://data.blob.core.windows.net/photos/a.png"}) {
    EXPECT_EQ(Said(url), "") << url;
  }
}

TEST(UrlQuery, VersionsAreNotRead) {
  for (const char* url :
       {"s3://bucket/a.csv?versionId=hunter2", "s3://bucket/a?x=1&versionid=hunter2",
        "abfss://photos@data.dfs.core.windows.net/a?snapshot=hunter2",
        "https://data.blob.core.windows.net/photos/a?versionid=hunter2&sig=x"}) {
    EXPECT_THAT(Said(url), AllOf(HasSubstr("/a"), HasSubstr("version"),
                                 HasSubstr("Leave out the ?"), Not(HasSubstr("hunter2"))));
  }
}

TEST(UrlQuery, SignaturesAreShownToNobody) {
  for (const char* url : {"s3://bucket/a.csv?X-Amz-Algorithm=a&X-Amz-Signature=hunter2",
                          "s3://bucket/a?AWSAccessKeyId=hunter2&Signature=hunter2&Expires=1"}) {
    EXPECT_THAT(Said(url), AllOf(HasSubstr("s3://bucket/a"), HasSubstr("AWS_ACCESS_KEY_ID"),
                                 Not(HasSubstr("hunter2"))));
  }
  for (const char* url : {"https://data.blob.core.windows.net/photos/a?sv=1&sig=hunter2",
                          "https://data.blob.core.windows.net/photos/a?hunter2",
                          "abfss://photos@data.dfs.core.windows.net/a?sv=1&sig=hunter2"}) {
    EXPECT_THAT(Said(url), AllOf(HasSubstr("AZURE_STORAGE_SAS_TOKEN"), Not(HasSubstr("hunter2"))));
  }
}

// What to write in place of the whole URL, and not how to sign it.
TEST(UrlQuery, AddressesOfWhatIsReadOtherwiseSayHow) {
  for (const char* url :
       {"https://bucket.s3.eu-west-1.amazonaws.com/a.csv?X-Amz-Signature=hunter2",
        "https://s3.amazonaws.com/bucket/a?versionId=hunter2",
        "https://bucket.s3.cn-north-1.amazonaws.com.cn/a?X-Amz-Signature=hunter2"}) {
    EXPECT_THAT(Said(url), AllOf(HasSubstr("s3://BUCKET/PREFIX"), Not(HasSubstr("hunter2"))));
  }
  EXPECT_THAT(Said("https://example.com/a.csv?token=hunter2"),
              AllOf(HasSubstr("no web address but those"), Not(HasSubstr("hunter2"))));
}

}  // namespace
}  // namespace parallelrun::store
