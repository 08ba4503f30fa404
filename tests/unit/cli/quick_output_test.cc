#include "cli/run/quick_output.h"

#include <gmock/gmock.h>

namespace parallelrun::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(QuickOutputTest, AUrlNamesAPrefixOrTheFile) {
  const struct {
    const char* word;
    const char* url;
    const char* file;
    const char* folder;
  } cases[] = {
      {"s3://bucket", "s3://bucket", "", "bucket.run"},
      {"s3://bucket/", "s3://bucket", "", "bucket.run"},
      {"s3://bucket/a/b", "s3://bucket/a/b", "", "b.run"},
      {"s3://bucket/a/b.txt/", "s3://bucket/a/b.txt", "", "b.txt.run"},
      {"s3://bucket/a/v1.2", "s3://bucket/a/v1.2", "", "v1.2.run"},
      {"s3://bucket/scores.txt", "s3://bucket", "scores.txt", "scores.txt.run"},
      {"s3://bucket/a/scores.csv", "s3://bucket/a", "scores.csv", "scores.csv.run"},
      {"s3://my.txt", "s3://my.txt", "", "my.txt.run"},
  };
  for (const auto& one : cases) {
    const Result<QuickOutput> output = LookAtOutput(one.word);
    ASSERT_TRUE(output.ok()) << output.error().message;
    EXPECT_EQ(output->url, one.url) << one.word;
    EXPECT_EQ(output->file, one.file) << one.word;
    EXPECT_EQ(output->folder, one.folder) << one.word;
  }
  EXPECT_EQ(LookAtOutput("s3://bucket/a", "kept")->folder, "kept");
  EXPECT_EQ(LookAtOutput("s3://bucket/a.csv")->format, api::OutputFormat::kCsv);
  EXPECT_EQ(LookAtOutput("s3://bucket/a.parquet")->format, api::OutputFormat::kParquet);
}

// Each would be a folder of the current one, with the rows in it.
TEST(QuickOutputTest, NoUrlBecomesAFolder) {
  for (const char* url : {"gs://bucket/out/", "https://example.com/out", "hdfs://host:8020/out",
                          "S3://bucket/out.csv", "sftp://ann:SECRET@host/out"}) {
    const auto looked = LookAtOutput(url);
    ASSERT_FALSE(looked.ok()) << url;
    EXPECT_THAT(looked.error().message, HasSubstr("s3://BUCKET/PREFIX/")) << url;
    EXPECT_THAT(looked.error().message, Not(HasSubstr("SECRET")));
  }
  EXPECT_THAT(LookAtOutput("file:///data/out").error().message, HasSubstr("without file://"));
  EXPECT_THAT(LookAtOutput("s3://bucket/out", "s3://bucket/state").error().message,
              HasSubstr("--state is a URL"));
  EXPECT_EQ(LookAtOutput("a:b/c")->folder, "a:b/c");
}

// Else the query would be a part of the key, and the file a prefix.
TEST(QuickOutputTest, AQueryIsNoPartOfAKey) {
  for (const char* url : {"s3://bucket/a.csv?versionId=SECRET", "s3://bucket/a/?x=SECRET",
                          "s3://bucket/a.csv?X-Amz-Signature=SECRET"}) {
    const auto looked = LookAtOutput(url);
    ASSERT_FALSE(looked.ok()) << url;
    EXPECT_THAT(looked.error().message, HasSubstr("has a ? behind it")) << url;
    EXPECT_THAT(looked.error().message, Not(HasSubstr("SECRET")));
  }
  EXPECT_EQ(LookAtOutput("out?x=1")->folder, "out?x=1");
}

TEST(QuickOutputTest, WhatIsWrongIsSaid) {
  EXPECT_THAT(LookAtOutput("out", "kept").error().message, HasSubstr("--state goes with"));
  EXPECT_THAT(LookAtOutput("s3://").error().message, HasSubstr("--output: "));
  EXPECT_THAT(LookAtOutput("s3://bucket/a.feather").error().message,
              HasSubstr("a format that is not written"));
}

}  // namespace
}  // namespace parallelrun::cli
