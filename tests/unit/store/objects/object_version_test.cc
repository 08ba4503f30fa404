#include "store/objects/object_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace parallelrun::store {
namespace {

HttpResponse Head(const std::string& length, const std::string& etag) {
  HttpResponse answer;
  if (!length.empty()) answer.headers.push_back({"Content-Length", length});
  if (!etag.empty()) answer.headers.push_back({"ETag", etag});
  return answer;
}

TEST(ObjectVersion, AnObjectIsKnownByItsSizeAndItsEtag) {
  for (const char* etag : {"\"0x8D\"", "0x8D"}) {
    const Result<SizeAndEtag> read = ReadSizeAndEtag(Head("12", etag), "s3://bucket/a");
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(read->size, 12u);
    EXPECT_EQ(read->etag, "0x8D");
  }
  const std::string longest(kMostEtag, 'e');
  EXPECT_EQ(ReadSizeAndEtag(Head("0", longest), "a")->etag, longest);
  for (const HttpResponse& answer :
       {Head("", "e"), Head("12", ""), Head("12", "\"\""), Head("12 ", "e"), Head("-1", "e"),
        Head("99999999999999999999", "e"), Head("1", longest + "e")}) {
    const Result<SizeAndEtag> read = ReadSizeAndEtag(answer, "s3://bucket/a");
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code, Code::kInvalid);
    EXPECT_THAT(read.error().message,
                testing::HasSubstr("s3://bucket/a: the server tells no size"));
  }
}

}  // namespace
}  // namespace parallelrun::store
