#include "plan/columns/column_types.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <vector>

#include "api/enums.h"
#include "plan/columns/field_class.h"

namespace parallelrun::plan {
namespace {

FieldBits BitsOf(const std::vector<std::string>& fields,
                 const MissingWords& missing = MissingWords()) {
  FieldBits bits = 0;
  for (const std::string& text : fields) bits |= Classify(text, missing);
  return bits;
}

std::string TypeOf(const std::vector<std::string>& fields, bool all = true,
                   const MissingWords& missing = MissingWords()) {
  const DecidedType type = DecideType(BitsOf(fields, missing), all);
  return std::string(api::EnumWord(type.type)) + (type.missing ? "?" : "");
}

struct Texts {
  std::vector<std::string> texts;
  std::string alone;
  std::string with_12;
};

TEST(ColumnTypesTest, TheTypeOfATextIsThatOfPandasUnlessTheNumberWouldNotGiveItBack) {
  const std::string kNul("1\0", 2);
  const std::vector<Texts> kTable = {
      {{"12", "0", "-12", "-0", " 12", "12 ", "\t12", "20200101"}, "integer", "integer"},
      {{"+12", "00239", "-07", "00.5", "1 2"}, "text", "text"},
      {{"9007199254740993", "9223372036854775807", "-9223372036854775808"}, "integer", "integer"},
      {{"9223372036854775808", "18446744073709551616", "-9223372036854775809"}, "text", "text"},
      {{"1.", ".5", "1.50", "1e5", "1E-7", "1e05", "+.5", "1e-400"}, "number", "number"},
      {{".", "-", "+", "1e", "1e+", "e3", "1e1.5", "1d3", "1e309", "0e999999"}, "text", "text"},
      {{"inf", "-Infinity", "iNf"}, "number", "number"},
      {{" inf", "infin", "1.#INF"}, "text", "text"},
      {{"NaN", "nan", "-nan", "1.#IND", "NA", "null", "<NA>", "", "None"}, "number", "number"},
      {{"NAN", "+nan", "Nan", "Null", "none", "na", "--", "?", "\\N", "  "}, "text", "text"},
      {{"True", "tRUE", "FALSE"}, "boolean", "text"},
      {{" True", "T", "yes", "0x10", "1_000", "1,000", "1,5", "5%"}, "text", "text"},
      {{"١٢", "１２", "−1", kNul, "2020-01-01", "08:15"}, "text", "text"},
      {{"10e308", "0.1e309", "1e-99999", "18" + std::string(307, '0') + "e0"}, "text", "text"},
      {{"17e307", "0.00017e308", "1e0308", std::string(308, '1') + "."}, "number", "number"},
  };
  for (const Texts& row : kTable) {
    for (const std::string& text : row.texts) {
      EXPECT_EQ(TypeOf({text}), row.alone) << text;
      EXPECT_EQ(TypeOf({text, "12"}), row.with_12) << text;
    }
  }
}

// Plain numbers are known at one look, those with a blank in front are taken apart.
TEST(ColumnTypesTest, ANumberIsTheSameAtOneLookAndTakenApart) {
  std::mt19937 random(3);
  const MissingWords none({}, false);
  for (int round = 0; round < 50'000; ++round) {
    constexpr std::string_view kBytes = "0123456789012345678900--+..eEx ";
    std::string text;
    for (size_t n = 1 + random() % 20; n > 0; --n) {
      text += kBytes[random() % (random() % 4 == 0 ? kBytes.size() : 22)];
    }
    ASSERT_EQ(Classify(text, none), Classify(" " + text, none)) << text;
  }
}

TEST(ColumnTypesTest, TheTypeOfAColumnIsTheOrOfItsFields) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> kTable = {
      {{"1", ""}, "number"},
      {{"9007199254740993", ""}, "text"},
      {{"9007199254740993", "1.5"}, "text"},
      {{"9007199254740992", ""}, "number"},
      {{"9007199254740993", "x"}, "text"},
      {{"9223372036854775808", "NA"}, "text"},
      {{"18446744073709551616", "1.5"}, "text"},
      {{"True", ""}, "boolean?"},
      {{"True", "false"}, "boolean"},
      {{"True", "0"}, "text"},
      {{"True", "x", ""}, "text"},
      {{"", "NA"}, "number"},
      {{"-0", ""}, "number"},
      {{"-0", "0.5"}, "number"},
      {{"1", "1.0"}, "number"},
      {{"1", "00239"}, "text"},
      {{"1", "+2.5"}, "number"},
  };
  for (const auto& [fields, type] : kTable) {
    EXPECT_EQ(TypeOf(fields), type) << testing::PrintToString(fields);
    EXPECT_EQ(TypeOf({fields.rbegin(), fields.rend()}), type) << testing::PrintToString(fields);
  }
}

TEST(ColumnTypesTest, NothingButMissingValuesInASampleIsTextForThenWhateverComesFits) {
  EXPECT_EQ(TypeOf({"", "NA"}, false), "text");
  EXPECT_EQ(TypeOf({"1", "NA"}, false), "number");
}

TEST(ColumnTypesTest, WordsForMissingMayBeOthers) {
  const MissingWords no_words({}, false);
  EXPECT_EQ(TypeOf({"1", ""}, true, no_words), "text");
  EXPECT_EQ(TypeOf({"1", "NA"}, true, no_words), "text");
  const MissingWords dash({"-", "-999"}, false);
  EXPECT_EQ(TypeOf({"1", "-"}, true, dash), "number");
  EXPECT_EQ(Classify("-999.0", dash), field::kMissing);
  EXPECT_EQ(Classify("-999.00", dash), field::kFraction);
  EXPECT_EQ(dash.given(), (std::vector<std::string>{"-", "-999"}));
  EXPECT_EQ(Classify("-999", MissingWords({"-999.0"})), field::kMissing);
  for (const char* word : {"7", "007", "7.", "+7", "70e-1", " 7\t"}) {
    const MissingWords seven({word});
    for (const char* text : {"7", "7.0", word}) EXPECT_EQ(Classify(text, seven), field::kMissing);
    EXPECT_EQ(Classify("7.00", seven), field::kFraction) << word;
    EXPECT_EQ(Classify("-7", seven), field::kInteger) << word;
  }
  EXPECT_EQ(Classify("1000000000000000000", MissingWords({"1e18"})), field::kMissing);
  EXPECT_EQ(Classify("9223372036854775808", MissingWords({"9223372036854775807"})), field::kMissing)
      << "both are one double";
  EXPECT_EQ(Classify("0", MissingWords({"-0"})), field::kMissing);
  for (const char* word : {"+-7", "7 7", "nan", "inf", "1e19", "0x7", " ", ""}) {
    EXPECT_EQ(Classify("-7", MissingWords({word})), field::kInteger) << word;
    EXPECT_EQ(Classify("7", MissingWords({word})), field::kInteger) << word;
  }
  EXPECT_EQ(MissingWords({"NA", "x"}).given().size(), 20U);
}

TEST(ColumnTypesTest, WordsForMissingMayBeNumbersAndLong) {
  const std::string long_word = "7" + std::string(100, '0');
  const MissingWords words({"12", long_word}, true);
  EXPECT_EQ(Classify("12", words), field::kMissing);
  EXPECT_EQ(Classify("13", words), field::kInteger);
  EXPECT_EQ(Classify(long_word, words), field::kMissing);
  EXPECT_EQ(Classify(long_word + "0", words), field::kBeyond);
  EXPECT_EQ(Classify("1.#IND", words), field::kMissing);
}

SeenColumn Seen(const std::vector<std::string>& fields) {
  SeenColumn seen;
  uint64_t line = 1;
  for (const std::string& text : fields) {
    ++line;
    seen.Add(Classify(text, MissingWords()), text, [&] { return FieldPlace{"in/a.csv", line, 7}; });
  }
  return seen;
}

std::string Why(const std::vector<std::string>& fields) {
  const SeenColumn seen = Seen(fields);
  return ReasonOf(DecideType(seen.bits(), true), seen);
}

TEST(ColumnTypesTest, TheFirstFieldThatDecidedIsTheReason) {
  EXPECT_EQ(Why({"12", "00239", "007"}), "\"00239\" has a leading zero, in/a.csv:3");
  EXPECT_EQ(Why({"12", "abc"}), "\"abc\" is not a number, in/a.csv:3");
  EXPECT_EQ(Why({"12", " John"}), "\" John\" is not a number, in/a.csv:3");
  EXPECT_EQ(Why({"12", "", "13"}), "an empty field is missing, in/a.csv:3");
  EXPECT_EQ(Why({"12", "1.5"}), "\"1.5\" is a number, in/a.csv:3");
  EXPECT_EQ(Why({"9007199254740993", ""}),
            "\"9007199254740993\" is an integer, which a number would round, in/a.csv:2");
  EXPECT_EQ(Why({"1", "True"}), "\"True\" is a boolean, in/a.csv:3");
  for (const std::string plain : {"1", "1.5", "abc", "True", ""}) EXPECT_EQ(Why({plain}), "");
}

TEST(ColumnTypesTest, ColumnsThatWereSeenInPartsAreJoined) {
  SeenColumn seen = Seen({"1", "2"});
  seen.Append(Seen({"3", "007"}));
  EXPECT_EQ(seen.bits(), field::kInteger | field::kLeadingZero);
  EXPECT_EQ(seen.FirstOf(field::kInteger).text, "1");
  EXPECT_EQ(seen.FirstOf(field::kLeadingZero).text, "007");
  EXPECT_TRUE(seen.settled());
}

TEST(ColumnTypesTest, NamesAreThoseOfPandas) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(ColumnNames({"a", "b"}), (Names{"a", "b"}));
  EXPECT_EQ(ColumnNames({"a", "", "a", ""}), (Names{"a", "Unnamed: 1", "a.1", "Unnamed: 3"}));
  EXPECT_EQ(ColumnNames({"a", "a", "a.1"}), (Names{"a", "a.2", "a.1"}));
  EXPECT_EQ(ColumnNames({"a.1", "a", "a"}), (Names{"a.1", "a", "a.2"}));
  EXPECT_EQ(ColumnNames({"", "Unnamed: 0"}), (Names{"Unnamed: 0.1", "Unnamed: 0"}));
  EXPECT_EQ(ColumnNames({" a ", "NA", "1", "1"}), (Names{" a ", "NA", "1", "1.1"}));
}

}  // namespace
}  // namespace parallelrun::plan
