#include "coordinator/log_tree/log_segment.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace parallelrun::coordinator {
namespace {

// What was read, and how much of the text that is.
std::vector<std::string> ReadAllOf(const std::string& segment, size_t& whole) {
  std::vector<std::string> records;
  const Result<size_t> read = ReadLogRecords(segment, [&](const LogRecord& record) {
    records.push_back(std::string(record.name) + (record.anew ? " anew " : " at ") +
                      std::to_string(record.offset) + ": " + std::string(record.bytes));
    return Status();
  });
  EXPECT_TRUE(read.ok());
  whole = read.ok() ? *read : 0;
  return records;
}

const std::string kTwoRecords =
    EncodeLogRecord({"user/stdout/0/a b.txt", 7, false, "one\nlog 1 2 at x\n"}) +
    EncodeLogRecord({"perf/0/p", 0, true, std::string_view("\0\n", 2)});

TEST(LogSegmentTest, RecordsComeAsTheyWere) {
  size_t whole = 0;
  EXPECT_EQ(ReadAllOf(kTwoRecords, whole),
            (std::vector<std::string>{"user/stdout/0/a b.txt at 7: one\nlog 1 2 at x\n",
                                      std::string("perf/0/p anew 0: \0\n", 19)}));
  EXPECT_EQ(whole, kTwoRecords.size());
  EXPECT_TRUE(ReadAllOf("", whole).empty());
  EXPECT_EQ(whole, 0U);
}

// A coordinator that died in the midst of a write has told nobody that it is kept.
TEST(LogSegmentTest, ATornEndIsNoRecord) {
  const std::string first = kTwoRecords.substr(0, kTwoRecords.find("log 0 2 anew"));
  for (size_t cut = 0; cut < kTwoRecords.size(); ++cut) {
    size_t whole = 0;
    const size_t records = ReadAllOf(kTwoRecords.substr(0, cut), whole).size();
    EXPECT_EQ(records, cut < first.size() ? 0U : 1U) << cut;
    EXPECT_EQ(whole, cut < first.size() ? 0U : first.size()) << cut;
  }
}

TEST(LogSegmentTest, WhatSomebodyElseHasWrittenIsNone) {
  for (const char* text :
       {"hello\n", "log x 1 at a\nb\n", "log 1 at a\nb\n", "log 1 99999999999999999999 at a\nb\n",
        "log 1 18446744073709551615 at a\nb\n", "log 1 1 on a\nb\n", "log 1 1 at a\nbb\n",
        "log 1 1 at a\n"}) {
    size_t whole = 1;
    EXPECT_TRUE(ReadAllOf(text, whole).empty()) << text;
    EXPECT_EQ(whole, 0U) << text;
  }
}

TEST(LogSegmentTest, AnErrorOfWhoReadsEndsIt) {
  int calls = 0;
  const Result<size_t> read = ReadLogRecords(kTwoRecords, [&](const LogRecord&) {
    ++calls;
    return Status(Error{Code::kNoSpace, "full"});
  });
  EXPECT_EQ(calls, 1);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, Code::kNoSpace);
}

}  // namespace
}  // namespace parallelrun::coordinator
