#include "job/side_uploads.h"

#include <gtest/gtest.h>

#include <string>

#include "job/side_list.h"

namespace parallelrun::job {
namespace {

TEST(SideUploads, PartsAreFewEnoughAndLargeEnough) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, 16 * kMiB, 16 * kMiB + 1, 9900 * 16 * kMiB,
                               9900 * 16 * kMiB + 1, uint64_t{5} << 40, kMostSideFileBytes}) {
    const uint64_t part = SidePartBytes(bytes);
    const uint64_t parts = SidePartsOf(bytes);
    EXPECT_GE(part, 16 * kMiB);
    EXPECT_LE(part, uint64_t{5} << 30);
    EXPECT_GE(parts, 1u);
    EXPECT_LE(parts, 9900u);
    EXPECT_GE(parts * part, bytes);
    EXPECT_TRUE(parts == 1 || (parts - 1) * part < bytes) << "the last one has bytes";
  }
  EXPECT_EQ(SidePartsOf(0), 1u);
  EXPECT_EQ(SidePartsOf(16 * kMiB), 1u);
  EXPECT_EQ(SidePartsOf(16 * kMiB + 1), 2u);
}

TEST(SideUploads, CallAndAnswerComeBackAsTheyWere) {
  SideUploadsWanted wanted{UINT64_MAX, {}};
  wanted.files.push_back({"a/\xc3\xa4.bin", 17, {1, 2, 255}, "", 1});
  wanted.files.push_back({"b", uint64_t{1} << 40, {}, "id+/=", 50});
  const Result<SideUploadsWanted> read = ParseSideUploadsWanted(SideUploadsWantedText(wanted));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->mini_batch, UINT64_MAX);
  ASSERT_EQ(read->files.size(), 2u);
  EXPECT_EQ(read->files[0].name, "a/\xc3\xa4.bin");
  EXPECT_EQ(read->files[0].sha256, wanted.files[0].sha256);
  EXPECT_EQ(read->files[0].upload, "");
  EXPECT_EQ(read->files[1].bytes, uint64_t{1} << 40);
  EXPECT_EQ(read->files[1].upload, "id+/=");
  EXPECT_EQ(read->files[1].part, 50u);

  const SideUploads uploads{1800, {{"one", {"https://a?x", "https://b"}}, {"two", {"u"}}}};
  const Result<SideUploads> answer = ParseSideUploads(SideUploadsText(uploads));
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->seconds, 1800u);
  ASSERT_EQ(answer->files.size(), 2u);
  EXPECT_EQ(answer->files[0].id, "one");
  EXPECT_EQ(answer->files[0].urls, uploads.files[0].urls);
}

TEST(SideUploads, WhatNoNodeMayAskForIsRefused) {
  const std::string digest(64, 'a');
  const auto call = [&digest](const std::string& name, const std::string& more = "") {
    return R"({"miniBatch":1,"files":[{"name":")" + name + R"(","bytes":5,"sha256":")" + digest +
           "\"" + more + "}]}";
  };
  EXPECT_TRUE(ParseSideUploadsWanted(call("a/b")).ok());
  std::string many;
  for (size_t i = 0; i < kMostSideUploads + 1; ++i) {
    many += std::string(many.empty() ? "" : ",") + R"({"name":"a","bytes":5,"sha256":")" + digest +
            "\"}";
  }
  for (const std::string& text : std::vector<std::string>{
           "", "[]", R"({"miniBatch":1,"files":[]})", R"({"files":[]})", call("../a"), call("/a"),
           call("a//b"), call(""), call("a", R"(,"upload":"u","part":2)"),
           call("a", R"(,"upload":"u","part":0)"), call(std::string(1025, 'n')),
           R"({"miniBatch":1,"files":[{"name":"a","bytes":5,"sha256":"aa"}]})",
           R"({"miniBatch":1,"files":[{"name":"a","bytes":5}]})",
           R"({"miniBatch":1,"files":[{"name":"a","bytes":18446744073709551615,"sha256":")" +
               digest + "\"}]}",
           R"({"miniBatch":1,"files":[)" + many + "]}"}) {
    const Result<SideUploadsWanted> read = ParseSideUploadsWanted(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, Code::kInvalid);
  }
  for (const char* const text : {"", "{}", R"({"seconds":1,"files":[{"upload":"","urls":["u"]}]})",
                                 R"({"seconds":1,"files":[{"upload":"u","urls":[]}]})",
                                 R"({"seconds":1,"files":[{"upload":"u","urls":[1]}]})"}) {
    EXPECT_FALSE(ParseSideUploads(text).ok()) << text;
  }
}

TEST(SideUploads, ALineKeepsTheUploadsOfItsFiles) {
  SideList list{"process000-5be1/17", {}};
  list.files.push_back({"a", 5, {7}, "upload", {"etag"}});
  list.files.push_back({"b", (uint64_t{16} << 20) + 1, {}, "other", {"one", "t\"wo"}});
  const Result<SideList> read = ParseSideList(SideListText(list));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, list);
  EXPECT_EQ(SideListText({}), "{}");
  const SideList plain{"process000-5be1/17", {{"a", 5, {7}, "", {}}}};
  EXPECT_EQ(*ParseSideList(SideListText(plain)), plain);
  list.files[1].etags.pop_back();
  EXPECT_FALSE(ParseSideList(SideListText(list)).ok()) << "a part is missing";
  list.files[1].etags.emplace_back("");
  EXPECT_FALSE(ParseSideList(SideListText(list)).ok());
}

}  // namespace
}  // namespace parallelrun::job
