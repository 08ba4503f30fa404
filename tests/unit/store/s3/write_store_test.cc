// What goes over the wire when an output is written, and what its answers mean.
#include "store/s3/s3_write_store.h"

#include <gmock/gmock.h>

#include <memory>

#include "store/s3/open_bucket.h"
#include "tests/unit/store/s3/small_s3.h"

namespace parallelrun::store::s3 {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kBegun =
    "<InitiateMultipartUploadResult><UploadId>id+/=1</UploadId></InitiateMultipartUploadResult>";
const std::string kCompleted =
    "<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult><ETag>\"e-2\"</ETag>"
    "</CompleteMultipartUploadResult>";

std::unique_ptr<WriteStore> StoreAt(const SmallS3& server, const Encryption& encryption = {}) {
  Result<std::unique_ptr<Bucket>> bucket = MakeBucket(
      QuickOptions(server, "s3://bucket/in"), StaticKeys(), std::make_shared<SystemClock>());
  EXPECT_TRUE(bucket.ok()) << bucket.error().message;
  return MakeWriteStore(std::move(*bucket), encryption);
}

// Answers uploads; `complete` answers the completion number `number`, from 0.
SmallS3::Script Uploads(std::function<std::string(size_t number)> complete) {
  auto completions = std::make_shared<size_t>(0);
  return [complete = std::move(complete), completions](PlainConnection& connection,
                                                       const Heard& heard, size_t) {
    if (heard.query == "uploads=") {
      connection.Write(SmallS3::Reply(200, kBegun));
    } else if (heard.method == "PUT") {
      connection.Write(SmallS3::Reply(200, "", "ETag: \"p<" + heard.body + "\"\r\n"));
    } else if (heard.method == "POST") {
      connection.Write(complete((*completions)++));
    } else {
      connection.Write("HTTP/1.1 204 X\r\n\r\n");
    }
    return true;
  };
}

Status SendAndComplete(WriteStore& store, const Expected& expected = {}) {
  Result<std::unique_ptr<Upload>> upload = store.Begin("a b.txt", {{"parallelrun-run", "7"}});
  if (!upload.ok()) return upload.error();
  for (const uint32_t number : {2U, 1U}) {
    if (Status sent = (*upload)->Send(number, std::to_string(number)); !sent.ok()) return sent;
  }
  return (*upload)->Complete(expected);
}

TEST(S3WriteStore, AnUploadIsBegunSentAndCompletedOnItsCondition) {
  SmallS3 server(Uploads([](size_t) { return SmallS3::Reply(200, kCompleted); }));
  const auto store = StoreAt(server);
  ASSERT_TRUE(SendAndComplete(*store).ok());
  ASSERT_TRUE(SendAndComplete(*store, Version("e-1")).ok());
  ASSERT_TRUE(store->EndUpload("a b.txt", "id+/=1").ok());
  const std::vector<Heard> heard = server.heard();
  ASSERT_EQ(heard.size(), 9u);
  EXPECT_EQ(heard[0].path, "/bucket/in/a b.txt");
  EXPECT_EQ(heard[0].Header("x-amz-meta-parallelrun-run"), "7");
  EXPECT_EQ(heard[1].query, "partNumber=2&uploadId=id%2B%2F%3D1");
  EXPECT_EQ(heard[3].query, "uploadId=id%2B%2F%3D1");
  EXPECT_EQ(heard[3].Header("If-None-Match"), "*");
  EXPECT_EQ(
      heard[3].body,
      "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"p&lt;1\"</ETag></Part>"
      "<Part><PartNumber>2</PartNumber><ETag>\"p&lt;2\"</ETag></Part>"
      "</CompleteMultipartUpload>");
  EXPECT_EQ(heard[7].Header("If-Match"), "\"e-1\"");
  EXPECT_EQ(heard[7].Header("If-None-Match"), "");
  EXPECT_EQ(heard[8].method, "DELETE");
}

// A bucket whose policy forbids what is not encrypted refused every write.
TEST(S3WriteStore, WhatIsWrittenIsEncryptedAsTheJobSays) {
  SmallS3 server(Uploads([](size_t) { return SmallS3::Reply(200, kCompleted); }));
  const std::string name = "x-amz-server-side-encryption";
  const std::string key_name = name + "-aws-kms-key-id";
  const std::string key = "arn:aws:kms:eu-west-1:123456789012:key/0a-1b";
  for (const Encryption& encryption :
       {Encryption{}, Encryption{"AES256", ""}, Encryption{"aws:kms", key}}) {
    const size_t before = server.heard().size();
    const auto store = StoreAt(server, encryption);
    ASSERT_TRUE(SendAndComplete(*store).ok());
    ASSERT_TRUE(store->Put("claim", "text", {}, {{"parallelrun-run", "8"}}).ok());
    const std::vector<Heard> heard = server.heard();
    ASSERT_EQ(heard.size(), before + 5);
    for (size_t i = 0; i < 5; ++i) {
      const Heard& one = heard[before + i];
      const bool begins = i == 0 || i == 4;  // the upload, and the object without one
      EXPECT_EQ(one.Header(name), begins ? encryption.algorithm : "") << i;
      EXPECT_EQ(one.Header(key_name), begins ? encryption.kms_key_id : "") << i;
      const bool is_signed = one.Header("Authorization").find(name) != std::string::npos;
      EXPECT_EQ(is_signed, begins && !encryption.algorithm.empty()) << i;
    }
    EXPECT_EQ(heard[before].Header("x-amz-meta-parallelrun-run"), "7");
    EXPECT_EQ(heard[before + 4].Header("If-None-Match"), "*");
    EXPECT_EQ(heard[before + 4].Header("x-amz-meta-parallelrun-run"), "8");
  }
}

TEST(S3WriteStore, AnErrorInAnAnswer200IsNoEnd) {
  SmallS3 server(Uploads([](size_t number) {
    return number == 0   ? SmallS3::Reply(200, SmallS3::ErrorXml("InternalError"))
           : number == 1 ? SmallS3::Reply(200, SmallS3::ErrorXml("SlowDown"))
                         : SmallS3::Reply(200, kCompleted);
  }));
  EXPECT_TRUE(SendAndComplete(*StoreAt(server)).ok());
  EXPECT_EQ(server.heard().size(), 6u);

  SmallS3 mute(Uploads([](size_t) { return SmallS3::Reply(200, ""); }));
  EXPECT_EQ(SendAndComplete(*StoreAt(mute)).error().code, Code::kUnavailable);
}

TEST(S3WriteStore, WhatTheEndMeetsIsTold) {
  const struct {
    int status;
    const char* code;
    Code error;
    const char* words;
  } ends[] = {
      {412, "PreconditionFailed", Code::kStale, "what is there is not what was expected"},
      {409, "ConditionalRequestConflict", Code::kUnavailable,
       "somebody else writes the same object right now"},
      {404, "NoSuchUpload", Code::kNotFound, "the upload is not there any more"},
      {501, "NotImplemented", Code::kInvalid, "does not know such a request"},
      {403, "AccessDenied", Code::kPermission,
       "s3:PutObject is missing on arn:aws:s3:::bucket/in/a b.txt: grant it to AWS_ACCESS_KEY_ID"},
  };
  for (const auto& end : ends) {
    SmallS3 server(
        Uploads([&](size_t) { return SmallS3::Reply(end.status, SmallS3::ErrorXml(end.code)); }));
    const Status ended = SendAndComplete(*StoreAt(server));
    EXPECT_EQ(ended.error().code, end.error) << ended.error().message;
    EXPECT_THAT(ended.error().message, HasSubstr(end.words));
    EXPECT_THAT(ended.error().message, StartsWith("writing s3://bucket/in/a b.txt (region "));
    EXPECT_EQ(server.heard().size(), 4u) << "sent once";
  }
}

TEST(S3WriteStore, APartIsSentAgainWholeAfterABreak) {
  size_t puts = 0;
  SmallS3 server([&](PlainConnection& connection, const Heard& heard, size_t) {
    if (heard.method == "PUT" && puts++ == 0) {
      connection.Write(SmallS3::Reply(503, SmallS3::ErrorXml("SlowDown")));
      return true;
    }
    connection.Write(heard.method == "PUT" ? SmallS3::Reply(200, "", "ETag: \"p\"\r\n")
                                           : SmallS3::Reply(200, kBegun));
    return true;
  });
  const auto store = StoreAt(server);
  const auto upload = store->Begin("a", {});
  const std::string part(300'000, 'x');
  ASSERT_TRUE((*upload)->Send(1, part).ok());
  EXPECT_EQ(server.heard().back().body, part);
}

TEST(S3WriteStore, ASmallObjectIsPutOnItsConditionAndAConflictIsTriedAgain) {
  size_t puts = 0;
  SmallS3 server([&](PlainConnection& connection, const Heard&, size_t) {
    connection.Write(puts++ == 0
                         ? SmallS3::Reply(409, SmallS3::ErrorXml("ConditionalRequestConflict"))
                         : SmallS3::Reply(200, "", "ETag: \"p\"\r\n"));
    return true;
  });
  ASSERT_TRUE(StoreAt(server)->Put("a", "text", std::nullopt, {}).ok());
  EXPECT_EQ(server.heard().size(), 2u);
  EXPECT_EQ(server.heard().back().Header("If-None-Match"), "*");
  EXPECT_EQ(server.heard().back().body, "text");

  // What was to be replaced, and is gone, is not what was expected.
  SmallS3 gone([](PlainConnection& connection, const Heard&, size_t) {
    connection.Write(SmallS3::Reply(404, SmallS3::ErrorXml("NoSuchKey")));
    return true;
  });
  EXPECT_EQ(StoreAt(gone)->Put("a", "text", Version("e"), {}).error().code, Code::kStale);
  EXPECT_TRUE(StoreAt(gone)->Remove("a").ok());
}

TEST(S3WriteStore, MarksAndTextsComeBack) {
  SmallS3 server([](PlainConnection& connection, const Heard& heard, size_t) {
    if (heard.method == "HEAD") {
      connection.Write(
          "HTTP/1.1 200 X\r\nContent-Length: 5\r\nETag: \"e\"\r\nX-Amz-Meta-Parallelrun-Run: 07\r\n"
          "x-amz-meta-other: x y\r\n\r\n");
    } else {
      connection.Write(SmallS3::Reply(200, "text!", "ETag: \"e\"\r\n"));
    }
    return true;
  });
  const auto store = StoreAt(server);
  const auto looked = store->Look("a");
  ASSERT_TRUE(looked.ok() && *looked);
  EXPECT_EQ((*looked)->found.size, 5u);
  EXPECT_EQ((*looked)->marks, (Marks{{"parallelrun-run", "07"}, {"other", "x y"}}));
  const auto text = store->Read("a");
  ASSERT_TRUE(text.ok() && *text);
  EXPECT_EQ((*text)->text, "text!");
  EXPECT_EQ((*text)->version, Version("e"));
}

// Whoever sends the parts has no keys, and can do nothing else with what it is given.
TEST(S3WriteStore, APartIsSignedForOneUploadAndOneNumber) {
  SmallS3 server(Uploads([](size_t) { return SmallS3::Reply(200, kCompleted); }));
  const auto store = StoreAt(server);
  const auto upload = store->Begin("a b.txt", {});
  ASSERT_TRUE(upload.ok());
  const Result<SignedUrl> url =
      store->SignPart("a b.txt", (*upload)->id(), 7, std::chrono::minutes(10));
  ASSERT_TRUE(url.ok()) << url.error().message;
  EXPECT_EQ(url->life, std::chrono::minutes(10));
  EXPECT_THAT(url->url, HasSubstr("/bucket/in/a%20b.txt?partNumber=7&uploadId=id%2B%2F%3D1&"));
  EXPECT_THAT(url->url, HasSubstr("X-Amz-Expires=600"));
  EXPECT_THAT(url->url, HasSubstr("X-Amz-SignedHeaders=host&"));
  EXPECT_EQ(server.heard().size(), 1u) << "to sign asks nobody";
}

TEST(S3WriteStore, AnUploadOfOthersPartsIsCompletedByTheirEtags) {
  SmallS3 server(Uploads([](size_t number) {
    return number == 0 ? SmallS3::Reply(200, kCompleted)
                       : SmallS3::Reply(404, SmallS3::ErrorXml("NoSuchUpload"));
  }));
  const auto store = StoreAt(server);
  ASSERT_TRUE(store->CompleteUpload("a", "id", {"one", "t<o"}, Version("e-1")).ok());
  const Heard heard = server.heard().back();
  EXPECT_EQ(heard.method, "POST");
  EXPECT_EQ(heard.query, "uploadId=id");
  EXPECT_EQ(heard.Header("If-Match"), "\"e-1\"");
  EXPECT_EQ(
      heard.body,
      "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"one\"</ETag></Part>"
      "<Part><PartNumber>2</PartNumber><ETag>\"t&lt;o\"</ETag></Part></CompleteMultipartUpload>");
  EXPECT_EQ(store->CompleteUpload("a", "id", {"one"}, {}).error().code, Code::kNotFound);
  EXPECT_EQ(server.heard().back().Header("If-None-Match"), "*");
}

TEST(S3WriteStore, WhetherAnUploadIsThereIsAskedByItsParts) {
  std::string answer;
  SmallS3 server([&answer](PlainConnection& connection, const Heard&, size_t) {
    connection.Write(answer);
    return true;
  });
  const auto store = StoreAt(server);
  answer = SmallS3::Reply(200, "<ListPartsResult></ListPartsResult>");
  EXPECT_TRUE(*store->HasUpload("a", "id+"));
  EXPECT_EQ(server.heard().back().method, "GET");
  EXPECT_EQ(server.heard().back().query, "max-parts=1&uploadId=id%2B");
  answer = SmallS3::Reply(404, SmallS3::ErrorXml("NoSuchUpload"));
  EXPECT_FALSE(*store->HasUpload("a", "id"));
  answer = SmallS3::Reply(403, SmallS3::ErrorXml("AccessDenied"));
  const Result<bool> denied = store->HasUpload("a", "id");
  ASSERT_FALSE(denied.ok());
  EXPECT_EQ(denied.error().code, Code::kPermission);
  EXPECT_THAT(denied.error().message,
              HasSubstr("s3:ListMultipartUploadParts is missing on arn:aws:s3:::bucket/in/a"));
}

TEST(S3WriteStore, WhatIsMissingIsNothing) {
  SmallS3 server;
  const auto store = StoreAt(server);
  EXPECT_FALSE(*store->Look("a"));
  EXPECT_FALSE(*store->Read("a"));
}

}  // namespace
}  // namespace parallelrun::store::s3
