#include "coordinator/log_tree/log_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/fault_files.h"

namespace parallelrun::coordinator {
namespace {

constexpr Duration kLong = std::chrono::hours(1);

class LogWriterTest : public ::testing::Test {
 protected:
  LogWriterTest() {
    Result<LogSink> sink = LogSink::Open(files_, "/job/logs");
    EXPECT_TRUE(sink.ok());
    writer_.emplace(std::move(*sink));
  }
  ~LogWriterTest() override { files_.Hang(""); }

  static LogWriter::Upload Upload(uint32_t node, uint64_t offset, std::string bytes) {
    LogWriter::Upload upload;
    upload.node = node;
    upload.path = {"user", "stdout", std::to_string(node), "a.txt"};
    upload.offset = offset;
    upload.bytes = std::move(bytes);
    return upload;
  }
  static std::string PathOf(uint32_t node) {
    return "/job/logs/user/stdout/" + std::to_string(node) + "/a.txt";
  }
  // The thread is at `name`, and stays there.
  void HangAt(const std::string& name) {
    files_.Hang("/job/logs");
    writer_->Append(name, "the first line\n");
    files_.AwaitHanging();
  }

  FaultFiles files_;
  std::optional<LogWriter> writer_;
};

TEST_F(LogWriterTest, WhatIsFinishedIsWritten) {
  std::vector<std::string> said;
  LogWriter::Upload upload = Upload(0, 0, "hello\n");
  upload.done = [&](const Status& written) { said.emplace_back(written.ok() ? "ok" : "failed"); };
  ASSERT_TRUE(writer_->Write(std::move(upload)));
  upload = Upload(1, 0, "not its own");
  upload.path[2] = "0";
  upload.done = [&](const Status& written) { said.emplace_back(CodeName(written.error().code)); };
  ASSERT_TRUE(writer_->Write(std::move(upload)));
  writer_->Append("lines.txt", "1\n");
  writer_->Append("lines.txt", "2\n");
  ASSERT_TRUE(writer_->Finish(kLong));
  EXPECT_EQ(files_.Contents(PathOf(0)), "hello\n");
  EXPECT_EQ(files_.Contents("/job/logs/lines.txt"), "1\n2\n");
  EXPECT_EQ(said, (std::vector<std::string>{"ok", "Permission"}));
  EXPECT_FALSE(writer_->Write(Upload(0, 6, "too late")));
}

TEST_F(LogWriterTest, WhatHasSettledIsWritten) {
  EXPECT_TRUE(writer_->Settle(kLong)) << "nothing came";
  HangAt("lines.txt");
  ASSERT_TRUE(writer_->Write(Upload(0, 0, "hello\n")));
  EXPECT_FALSE(writer_->Settle(Duration()));
  files_.Hang("");
  ASSERT_TRUE(writer_->Settle(kLong));
  EXPECT_EQ(files_.Contents("/job/logs/lines.txt"), "the first line\n");
  EXPECT_EQ(files_.Contents(PathOf(0)), "hello\n");
}

TEST_F(LogWriterTest, AVolumeThatHangsHoldsUpNobodyAndUploadsAreRefusedBeyondTheBounds) {
  HangAt("lines.txt");
  ASSERT_TRUE(writer_->Write(Upload(0, 0, "one\n")));
  EXPECT_FALSE(writer_->HasRoom(0));
  EXPECT_FALSE(writer_->Write(Upload(0, 4, "two\n"))) << "one of a node";
  const std::string most(size_t{8} << 20, 'x');
  uint32_t node = 1;
  for (; writer_->HasRoom(node); ++node) {
    if (!writer_->Write(Upload(node, 0, most))) break;
  }
  EXPECT_EQ(node, 8U) << "7 of 8 MiB beside the small one";
  EXPECT_FALSE(writer_->Finish(Duration(1)));
  files_.Hang("");
  ASSERT_TRUE(writer_->Finish(kLong));
  EXPECT_EQ(files_.Contents(PathOf(0)), "one\n");
  EXPECT_EQ(files_.Contents(PathOf(7)).size(), most.size());
  EXPECT_FALSE(files_.Has(PathOf(8)));
}

TEST_F(LogWriterTest, AnUploadWhoseCallerHasGoneIsPassedOver) {
  HangAt("lines.txt");
  LogWriter::Upload upload = Upload(3, 0, "it is sent again");
  std::string said;
  upload.given_up = [] { return true; };
  upload.done = [&](const Status& written) { said = CodeName(written.error().code); };
  ASSERT_TRUE(writer_->Write(std::move(upload)));
  files_.Hang("");
  ASSERT_TRUE(writer_->Finish(kLong));
  EXPECT_EQ(said, "Unavailable");
  EXPECT_FALSE(files_.Has(PathOf(3)));
}

TEST_F(LogWriterTest, TheOldestLinesGoFirst) {
  HangAt("first.txt");
  const std::string line(1023, 'x');
  for (int i = 0; i < 5000; ++i) writer_->Append("lines.txt", line + "\n");
  writer_->Append("lines.txt", "the last line\n");
  files_.Hang("");
  ASSERT_TRUE(writer_->Finish(kLong));
  EXPECT_EQ(files_.Contents("/job/logs/first.txt"), "the first line\n") << "it was on its way";
  const std::string lines = files_.Contents("/job/logs/lines.txt");
  EXPECT_LE(lines.size(), LogWriter::kMostLineBytes);
  EXPECT_GT(lines.size(), LogWriter::kMostLineBytes / 10 * 9);
  EXPECT_TRUE(lines.ends_with("x\nthe last line\n"));
}

}  // namespace
}  // namespace parallelrun::coordinator
