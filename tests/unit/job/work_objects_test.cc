#include "job/work_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "job/record_codec.h"
#include "job/records.h"
#include "job/work.h"

namespace parallelrun::job {
namespace {

using ::testing::ElementsAre;

std::string WorkOf(job::PlanChunkRecord chunk, uint32_t index = 0) {
  std::string record;
  job::EncodeRecord(std::move(chunk), record);
  return job::WorkMaker::FromRecord(std::move(record))->Make(index);
}

// The bytes of a file that nobody looked at: it was compared when it was fetched.
const std::string kNotLooked("\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 16);

std::string Numbered(const ObjectName& object) { return "7/" + object.version; }

job::PlanChunkRecord Files(std::string_view store) {
  job::FilesChunk files{2, "s3://b/in", std::string_view("a\0b/c\0d", 7), {"v1", "v2", "v3"}};
  if (store.empty()) {
    files.root = "/c";
    files.names = std::string_view("7/v1\0007/v2\0007/v3", 14);
    files.versions = {kNotLooked, kNotLooked, kNotLooked};
  }
  return {4, 9, 0, files, store};
}

TEST(WorkObjects, OfFiles) {
  const std::string work = WorkOf(Files("bucket"));
  EXPECT_TRUE(NamesObjects(work));
  const auto objects = ObjectsOf(work);
  ASSERT_TRUE(objects.ok());
  EXPECT_THAT(*objects, ElementsAre(ObjectName{"bucket", "s3://b/in/a", "v1"},
                                    ObjectName{"bucket", "s3://b/in/b/c", "v2"}));
}

// What a process reads is what it would read of a folder with these files.
TEST(WorkObjects, FilesTakeTheirPlace) {
  EXPECT_EQ(WithFiles(WorkOf(Files("bucket")), "/c", Numbered), WorkOf(Files("")));
  EXPECT_EQ(WithFiles(WorkOf(Files("bucket"), 1), "/c", Numbered), WorkOf(Files(""), 1));
  EXPECT_FALSE(NamesObjects(WorkOf(Files(""))));
}

TEST(WorkObjects, WhatAManifestSaysOfFilesStays) {
  const auto described = [](std::string_view store) {
    job::PlanChunkRecord files = Files(store);
    std::get<job::FilesChunk>(files.content).metadata = {"{\"n\":1}", "{}", "{}"};
    return files;
  };
  EXPECT_TRUE(NamesObjects(WorkOf(described("bucket"))));
  EXPECT_FALSE(NamesObjects(WorkOf(described(""))));
  EXPECT_EQ(WithFiles(WorkOf(described("bucket")), "/c", Numbered), WorkOf(described("")));
}

TEST(WorkObjects, OfTables) {
  for (const job::RowKind kind :
       {job::RowKind::kDelimited, job::RowKind::kJsonLines, job::RowKind::kParquet}) {
    job::TabularChunk there{"s3://b/t.csv", 4000, "v1", "x\n", "{}", {{10, 20, 3}, {30, 5, 1}}};
    there.kind = kind;
    job::TabularChunk here = there;
    here.path = "/c/7/v1";
    here.version = kNotLooked;
    const std::string work = WorkOf({0, 0, 0, there, "bucket"}, 1);
    EXPECT_THAT(*ObjectsOf(work), ElementsAre(ObjectName{"bucket", "s3://b/t.csv", "v1", 4000}));
    const std::string with_files = WithFiles(work, "/c", Numbered);
    // The length of a Parquet file, which no reader asks for, comes from its version there.
    if (kind == job::RowKind::kParquet) {
      EXPECT_EQ(with_files.size(), WorkOf({0, 0, 0, here, ""}, 1).size());
      EXPECT_NE(with_files.find("/c/7/v1"), std::string::npos);
    } else {
      EXPECT_EQ(with_files, WorkOf({0, 0, 0, here, ""}, 1));
    }
  }
}

// A node that has one of the mini-batches of a large table would else fetch all of it.
TEST(WorkObjects, OfALargeTableASliceIsItsBytes) {
  constexpr uint64_t kLarge = uint64_t{1} << 30;
  const auto object = [](job::RowKind kind, const std::string& format, uint64_t size) {
    job::TabularChunk there{"s3://b/t", size, "v1", "x\n", format, {{10, 20, 3}, {30, 5, 1}}};
    there.kind = kind;
    const std::string work = WorkOf({0, 0, 0, there, "bucket"}, 1);
    job::TabularChunk here = there;
    here.path = "/c/7/v1";
    here.version = kNotLooked;
    if (kind != job::RowKind::kParquet) {
      EXPECT_EQ(WithFiles(work, "/c", Numbered), WorkOf({0, 0, 0, here, ""}, 1))
          << "it stands where it stood";
    }
    const auto objects = ObjectsOf(work);
    EXPECT_TRUE(objects.ok() && objects->size() == 1);
    return objects->at(0);
  };
  const ObjectName slice{"bucket", "s3://b/t", "v1", kLarge, {30, 5}};
  const ObjectName whole{"bucket", "s3://b/t", "v1", kLarge};
  using job::RowKind;
  EXPECT_EQ(object(RowKind::kDelimited, "{}", kLarge), slice);
  EXPECT_EQ(object(RowKind::kJsonLines, "{}", kLarge), slice);
  EXPECT_EQ(object(RowKind::kDelimited, R"({"compressed":false})", kLarge), slice);
  EXPECT_EQ(object(RowKind::kDelimited, R"({"compressed":true})", kLarge), whole);
  EXPECT_EQ(object(RowKind::kJsonLines, R"({"compressed":true})", kLarge), whole);
  EXPECT_TRUE(object(RowKind::kParquet, R"({"format":"parquet"})", kLarge).range.whole());
  const ObjectName small{"bucket", "s3://b/t", "v1", 34};
  EXPECT_EQ(object(RowKind::kDelimited, "{}", 34), small) << "the next slice is of it too";
}

TEST(WorkObjects, OfGroupsOfTables) {
  job::TableSlice a{"s3://b/a", "h\n", 1, 2, 3, 50, "v1"};
  job::TableSlice b{"s3://b/b", "h\n", 4, 5, 6, 60, "v2"};
  job::TableGroupsChunk chunk;
  chunk.format = "{}";
  chunk.groups = {{"{}", {a, b}}};
  const std::string work = WorkOf({0, 0, 0, chunk, "bucket"});
  a.path = "/c/7/v1";
  b.path = "/c/7/v2";
  a.version = b.version = kNotLooked;
  chunk.groups = {{"{}", {a, b}}};
  EXPECT_EQ(WithFiles(work, "/c", Numbered), WorkOf({0, 0, 0, chunk, ""}));
}

TEST(WorkObjects, WhatIsNoWorkIsRefused) {
  const std::string work = WorkOf(Files("bucket"));
  for (size_t size = 0; size < work.size(); ++size) {
    EXPECT_FALSE(ObjectsOf(work.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ObjectsOf(work + "x").ok());
}

}  // namespace
}  // namespace parallelrun::job
