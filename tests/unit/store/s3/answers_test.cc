#include "store/s3/answers.h"

#include <gtest/gtest.h>

#include <string>

#include "store/s3/timestamps.h"

namespace parallelrun::store::s3 {
namespace {

std::string ListXml(const std::string& inner) {
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
         "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">" +
         inner + "</ListBucketResult>";
}

std::string ContentsXml(const std::string& key, const std::string& size = "1",
                        const std::string& etag = "&quot;e&quot;") {
  return "<Contents><Key>" + key +
         "</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>" + etag +
         "</ETag><Size>" + size + "</Size></Contents>";
}

TEST(S3Answers, APageOfKeys) {
  const Result<ListPage> page =
      ParseListPage(ListXml("<Name>b</Name><IsTruncated>true</IsTruncated>" +
                            ContentsXml("a &amp; b/c", "18446744073709551615", "\"abc-2\"") +
                            ContentsXml(" ", "0", "def")));
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_TRUE(page->more);
  ASSERT_EQ(page->keys.size(), 2u);
  EXPECT_EQ(page->keys[0].key, "a & b/c");
  EXPECT_EQ(page->keys[0].size, UINT64_MAX);
  EXPECT_EQ(page->keys[0].etag, "abc-2");
  EXPECT_EQ(page->keys[1].key, " ");
  EXPECT_EQ(page->keys[1].etag, "def");
  EXPECT_FALSE(ParseListPage(ListXml(""))->more);
}

TEST(S3Answers, APageOfFolders) {
  const Result<ListPage> page =
      ParseListPage(ListXml("<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
                            "<CommonPrefixes><Prefix>a%20b/</Prefix></CommonPrefixes>"
                            "<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes>"));
  ASSERT_TRUE(page.ok()) << page.error().message;
  EXPECT_TRUE(page->keys.empty());
  EXPECT_EQ(page->folders, (std::vector<std::string>{"a b/", "c/"}));
  EXPECT_TRUE(page->more);
  EXPECT_FALSE(ParseListPage(ListXml("<CommonPrefixes></CommonPrefixes>")).ok());
}

TEST(S3Answers, KeysAreDecodedOnlyWhereTheAnswerSaysSo) {
  const std::string key = "a%20b+c%2Bd%25%E1%88%B4%0A";
  EXPECT_EQ(ParseListPage(ListXml(ContentsXml(key)))->keys[0].key, key);
  EXPECT_EQ(
      ParseListPage(ListXml("<EncodingType>url</EncodingType>" + ContentsXml(key)))->keys[0].key,
      "a b c+d%\u1234\n");
}

TEST(S3Answers, WhatIsNoPageIsRefused) {
  for (const std::string& body :
       {std::string(), std::string("<html>no</html>"), std::string("{}"),
        ListXml("<Contents><Key>cut"), ListXml(ContentsXml("")), ListXml(ContentsXml("a", "-1")),
        ListXml(ContentsXml("a", "")), ListXml(ContentsXml("a", "99999999999999999999")),
        ListXml(ContentsXml(std::string(5000, 'a'))),
        ListXml(ContentsXml("a", "1", std::string(300, 'e'))),
        ListXml("<EncodingType>url</EncodingType>" + ContentsXml("%4")),
        // It would be asked for again and again.
        ListXml("<IsTruncated>true</IsTruncated>")}) {
    const Result<ListPage> page = ParseListPage(body);
    ASSERT_FALSE(page.ok()) << body;
    EXPECT_EQ(page.error().code, Code::kCorrupt);
  }
}

TEST(S3Answers, EntitiesOfADocumentsOwnAreNotFollowed) {
  const std::string bomb =
      "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">"
      "<!ENTITY f SYSTEM \"file:///etc/passwd\">]>";
  const Result<ListPage> page =
      ParseListPage(bomb + "<ListBucketResult>" + ContentsXml("&b;&f;") + "</ListBucketResult>");
  ASSERT_TRUE(page.ok());
  EXPECT_EQ(page->keys[0].key, "&b;&f;");
}

TEST(S3Answers, ADocumentOfDeepFoldersNeedsNoDeepStack) {
  std::string deep;
  for (int i = 0; i < 500'000; ++i) deep += "<a>";
  EXPECT_FALSE(ParseListPage(deep).ok());
  EXPECT_FALSE(ParseErrorBody(deep).has_value());
}

TEST(S3Answers, Errors) {
  const auto error = ParseErrorBody(
      "<?xml version=\"1.0\"?><Error><Code>AuthorizationHeaderMalformed</Code>"
      "<Message>the region &apos;x&apos; is wrong</Message><Region>eu-west-1</Region></Error>");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, "AuthorizationHeaderMalformed");
  EXPECT_EQ(error->message, "the region 'x' is wrong");
  EXPECT_EQ(error->region, "eu-west-1");
  EXPECT_EQ(
      ParseErrorBody("<ErrorResponse><Error><Code>AccessDenied</Code></Error></ErrorResponse>")
          ->code,
      "AccessDenied");
  EXPECT_FALSE(ParseErrorBody(ListXml("")));
  EXPECT_FALSE(ParseErrorBody("gateway time-out"));
}

TEST(S3Answers, KeysOfAnAssumedRole) {
  const auto answer = [](const std::string& credentials) {
    return "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>" +
           credentials +
           "</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
  };
  const std::string keys =
      "<SessionToken>t</SessionToken><SecretAccessKey>s</SecretAccessKey>"
      "<AccessKeyId>ASIA</AccessKeyId>";
  const Result<SessionKeys> session =
      ParseAssumedRole(answer(keys + "<Expiration>2026-11-23T18:00:00Z</Expiration>"));
  ASSERT_TRUE(session.ok());
  EXPECT_EQ(session->keys.id, "ASIA");
  EXPECT_EQ(session->keys.secret, "s");
  EXPECT_EQ(session->keys.token, "t");
  EXPECT_EQ(session->ends, ParseIsoTime("2026-11-23T18:00:00Z"));
  EXPECT_FALSE(ParseAssumedRole(answer(keys)).ok());
  EXPECT_FALSE(ParseAssumedRole("<html/>").ok());
}

TEST(S3Answers, JsonThatHoldsNoKeysIsRefused) {
  for (const char* body :
       {"", "[]", "{}", "no", R"({"AccessKeyId":"A"})", R"({"AccessKeyId":1,"SecretAccessKey":2})",
        R"({"AccessKeyId":"A","SecretAccessKey":"s","Expiration":"soon"})"}) {
    EXPECT_EQ(ParseKeysJson(body).error().code, Code::kCorrupt) << body;
  }
  EXPECT_FALSE(ParseKeysJson(R"({"AccessKeyId":"A","SecretAccessKey":"s"})")->ends);
}

}  // namespace
}  // namespace parallelrun::store::s3
