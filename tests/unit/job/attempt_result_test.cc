#include "job/attempt_result.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace parallelrun::job {
namespace {

AttemptResult NumberedResult() {
  return {.run_ns = 1,
          .cpu_ns = 2,
          .elapsed_ns = 3,
          .finished_us = 4,
          .waited_ns = 8,
          .read_ns = 9,
          .wrote_ns = std::nullopt,
          .items_succeeded = 5,
          .items_skipped = 6,
          .row_count = 7};
}

// "8:1" is the number 1 in 8 bytes, "8:-" one that is not known.
std::string BytesOf(const std::string& numbers) {
  std::string bytes;
  for (size_t at = 0; at < numbers.size(); at += 4) {
    const auto size = static_cast<size_t>(numbers[at] - '0');
    if (numbers[at + 2] == '-') {
      bytes += std::string(size, '\xff');
    } else {
      bytes += static_cast<char>(numbers[at + 2] - '0') + std::string(size - 1, '\0');
    }
  }
  return bytes;
}

struct ResultFormat {
  Carrier carrier;
  bool succeeded;
  const char* numbers;
};

constexpr ResultFormat kResultFormats[] = {
    {Carrier::kFrame, true, "8:1 8:2 8:8 8:9 8:- 4:5 4:6 4:7"},
    {Carrier::kFrame, false, "8:1 8:2 8:8 8:9 8:-"},
    {Carrier::kExchange, true, "8:1 8:2 8:3 8:8 8:9 8:- 4:5 4:6 4:7"},
    {Carrier::kExchange, false, "8:1 8:2 8:3 8:8 8:9 8:-"},
    {Carrier::kRecord, true, "8:1 8:3 8:2 8:4 4:5 4:7"},
    {Carrier::kRecord, false, "8:1 8:3 8:2 8:4"},
};

// The bytes are a contract with every ledger that was ever written, and with every worker.
TEST(AttemptResultTest, EachCarrierHasItsNumbersInTheirPlaces) {
  for (const ResultFormat& format : kResultFormats) {
    const std::string expected = BytesOf(format.numbers);
    std::string bytes;
    Encoder out(bytes);
    PutResult(out, NumberedResult(), format.carrier, format.succeeded);
    EXPECT_EQ(bytes, expected) << format.numbers;
    EXPECT_EQ(BytesOfResult(format.carrier, format.succeeded), expected.size()) << format.numbers;
  }
}

TEST(AttemptResultTest, WhatWasWrittenComesBack) {
  for (const ResultFormat& format : kResultFormats) {
    std::string bytes;
    Encoder out(bytes);
    PutResult(out, NumberedResult(), format.carrier, format.succeeded);
    AttemptResult read;
    Decoder in(bytes);
    GetResult(in, read, format.carrier, format.succeeded);
    EXPECT_TRUE(in.Done()) << format.numbers;
    std::string again;
    Encoder second(again);
    PutResult(second, read, format.carrier, format.succeeded);
    EXPECT_EQ(again, bytes) << format.numbers;
    EXPECT_EQ(read.run_ns, 1U);
    EXPECT_EQ(read.row_count, format.succeeded ? 7U : 0U);
  }
}

TEST(AttemptResultTest, BytesThatAreCutOffAreNoResult) {
  for (const ResultFormat& format : kResultFormats) {
    const std::string whole = BytesOf(format.numbers);
    for (size_t size = 0; size < whole.size(); ++size) {
      const std::string cut = whole.substr(0, size);
      AttemptResult read;
      Decoder in(cut);
      GetResult(in, read, format.carrier, format.succeeded);
      EXPECT_FALSE(in.ok()) << format.numbers << " at " << size;
    }
  }
}

// Type 128: mini-batch, fence, and what is known.
TEST(AttemptResultTest, TheUsageSaysWhatTheRecordHasNoPlaceFor) {
  const UsageName name{5, {3, 4}};
  const std::string body = EncodeUsage(name, NumberedResult());
  EXPECT_EQ(body, BytesOf("8:5 4:3 8:4 4:2 1:7 8:8 1:8 8:9"));
  AttemptResult read;
  EXPECT_EQ(DecodeUsage(body, read), name);
  EXPECT_EQ(read.waited_ns, 8U);
  EXPECT_EQ(read.read_ns, 9U);
  EXPECT_FALSE(read.wrote_ns);
  EXPECT_EQ(EncodeUsage(name, {}), "") << "an agent of before measured nothing";
}

TEST(AttemptResultTest, AUsageOfALaterVersionIsReadAsFarAsItIsKnown) {
  AttemptResult read;
  EXPECT_EQ(DecodeUsage(BytesOf("8:5 4:3 8:4 4:2 1:1 8:6 1:8 8:9"), read), (UsageName{5, {3, 4}}));
  EXPECT_EQ(read.read_ns, 9U);
  EXPECT_FALSE(read.waited_ns);
  EXPECT_FALSE(DecodeUsage("", read));
  EXPECT_FALSE(DecodeUsage(BytesOf("8:5 4:3 8:4 4:2 1:8 8:9"), read))
      << "two are said, one is there";
  EXPECT_FALSE(DecodeUsage(BytesOf("8:5 4:3 8:4 4:1 1:8 8:9 1:1"), read)) << "more than is said";
}

TEST(AttemptResultTest, EachAmountHasANumberAndANameOfItsOwn) {
  size_t amounts = 0;
  std::set<uint8_t> numbers;
  std::set<std::string_view> names;
  const AttemptResult any;
  EachAmount(any, [&](const Amount& amount, const std::optional<uint64_t>&) {
    ++amounts;
    numbers.insert(amount.what);
    names.insert(amount.name);
  });
  EXPECT_EQ(numbers.size(), amounts);
  EXPECT_EQ(names.size(), amounts);
  EXPECT_FALSE(names.contains("")) << "people see it by its name";
}

// A list of members in one more place would be one that the next member is forgotten in.
TEST(AttemptResultTest, AsAWholeItIsHandedOn) {
  struct Carried : AttemptResult {
    uint32_t process = 9;
  };
  Carried from;
  from.result() = NumberedResult();
  Carried to;
  to.result() = from.result();
  EXPECT_EQ(to.finished_us, 4);
  EXPECT_EQ(to.items_skipped, 6U);
  EXPECT_EQ(to.process, 9U);
}

}  // namespace
}  // namespace parallelrun::job
