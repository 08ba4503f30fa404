// What the list of an output in a store says of its side files, beside what is there.
#include "output/listed_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "output/output_file.h"
#include "output/output_index.h"
#include "tests/support/memory_store.h"

namespace parallelrun::output {
namespace {

using ::testing::StartsWith;

constexpr char kJobFolder[] = "memory://bucket/job/";

class ListedInStoreTest : public ::testing::Test {
 protected:
  ListedInStoreTest() {
    Put("a.txt", "one");
    Put("m/b.bin", "");
    Put("_files.jsonl",
        SideFileLine(FileOf("a.txt", "one"), 0) + SideFileLine(FileOf("m/b.bin", ""), 1));
  }

  void Put(const std::string& name, const std::string& bytes) {
    objects_.Put(kJobFolder + name, bytes);
  }
  Result<ListedFiles> Check(const std::string& output = "job/_files.jsonl") {
    return CheckListedFiles(*store_, output);
  }
  static job::SideFile FileOf(const std::string& name, const std::string& bytes) {
    Sha256 digest;
    digest.Add(bytes);
    job::SideFile file;
    file.name = name;
    file.bytes = bytes.size();
    file.sha256 = digest.Finish();
    return file;
  }

  MemoryObjects objects_;
  const std::unique_ptr<store::Store> store_ = objects_.Open("memory://bucket");
};

TEST_F(ListedInStoreTest, EachIsReadAndCompared) {
  Result<ListedFiles> found = Check();
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->files, 2u);
  EXPECT_EQ(found->bytes, 3u);
  EXPECT_EQ(found->damaged, 0u) << found->first;

  Put("a.txt", "two");
  found = Check();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->damaged, 1u);
  EXPECT_THAT(found->first, StartsWith("a.txt has other bytes"));

  objects_.Remove(std::string(kJobFolder) + "m/b.bin");
  Put("a.txt", "one");
  found = Check();
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->damaged, 1u);
  EXPECT_EQ(found->first, "m/b.bin is not there");
}

TEST_F(ListedInStoreTest, BesideRowsTheyStandInTheIndex) {
  std::string text;
  OutputIndex index(
      [&text](std::string_view line) {
        text += line;
        return Status();
      },
      OutputIndex::Rows::kApart);
  ASSERT_TRUE(index.Begin("rows.txt", "").ok());
  index.BeginMiniBatch(0);
  ASSERT_TRUE(index.EndMiniBatch(0, 1, {}, {FileOf("a.txt", "one"), FileOf("m/b.bin", "")}).ok());
  Put("rows.txt.index.jsonl", text);
  const Result<ListedFiles> found = Check("job/rows.txt");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ(found->files, 2u);
  EXPECT_EQ(found->damaged, 0u) << found->first;
}

TEST_F(ListedInStoreTest, AListThatIsNoneOrNotThereIsAnError) {
  Put("_files.jsonl", "no JSON\n");
  EXPECT_EQ(Check().error().code, Code::kInvalid);
  Put("_files.jsonl", "{}");
  EXPECT_EQ(Check().error().code, Code::kInvalid) << "it ends within a line";
  objects_.Remove(std::string(kJobFolder) + "_files.jsonl");
  EXPECT_EQ(Check().error().code, Code::kNotFound);
}

}  // namespace
}  // namespace parallelrun::output
