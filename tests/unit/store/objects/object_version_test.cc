#include "store/objects/object_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
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

TEST(ObjectVersion, APinSaysItOrTheRestIsAsItIs) {
  const std::optional<Found> now = Found{3, VersionOf("e", 3)};
  const auto pinned = [](const Pin& pin, const std::optional<Found>& found) {
    const std::optional<Found> made = PinnedObject(pin, found);
    if (!made) return std::string("look");
    const std::string size = std::to_string(*SizeOf(made->version));
    EXPECT_EQ(std::to_string(made->size), size);
    return std::string(EtagOf(made->version)) + " " + size;
  };
  EXPECT_EQ(pinned({}, now), "e 3");
  EXPECT_EQ(pinned({5, ""}, now), "e 5");
  EXPECT_EQ(pinned({{}, "f"}, now), "f 3");
  EXPECT_EQ(pinned({5, "f"}, now), "f 5");
  EXPECT_EQ(pinned({5, "f"}, std::nullopt), "f 5");
  EXPECT_EQ(pinned({5, ""}, std::nullopt), "look");
  EXPECT_EQ(pinned({{}, "f"}, std::nullopt), "look");
  EXPECT_EQ(pinned({}, std::nullopt), "look");
}

}  // namespace
}  // namespace parallelrun::store
