#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/partition_format.h"

namespace parallelrun::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Values = std::vector<std::string_view>;

std::optional<Values> Match(std::string_view format, std::string_view path) {
  const auto parsed = PartitionFormat::Parse(format);
  EXPECT_TRUE(parsed.ok()) << format;
  if (!parsed.ok()) return std::nullopt;
  const auto values = parsed->Match(path);
  // The values point into `path`.
  return values;
}

std::string BadFormat(std::string_view format) {
  const auto parsed = PartitionFormat::Parse(format);
  if (parsed.ok()) return "ok";
  EXPECT_EQ(parsed.error().code, Code::kInvalid);
  return parsed.error().message;
}

TEST(PartitionFormatTest, D10PathTemplates) {
  EXPECT_EQ(Match("{user}/{season}/{genres}.wav", "user1/winter/disco.wav"),
            (Values{"user1", "winter", "disco"}));
  EXPECT_EQ(Match("{Store}/{Brand}/{file_name}.{extension}", "1000/dominicks/week.csv"),
            (Values{"1000", "dominicks", "week", "csv"}));
  EXPECT_EQ(Match("/{a}", "x"), (Values{"x"}));  // as published templates are written
  EXPECT_THAT(PartitionFormat::Parse("{b}/{a}.x")->names(), ElementsAre("b", "a"));
}

TEST(PartitionFormatTest, TheWholePathMatchesOrNothing) {
  EXPECT_EQ(Match("{user}/{genres}.wav", "user1/disco.mp3"), std::nullopt);
  EXPECT_EQ(Match("{user}/{genres}.wav", "user1/disco.wav.bak"), std::nullopt);
  EXPECT_EQ(Match("{user}/{genres}.wav", "user1/winter/disco.wav"), std::nullopt);
  EXPECT_EQ(Match("{user}/{genres}.wav", "disco.wav"), std::nullopt);
  EXPECT_EQ(Match("{user}/{genres}.wav", "/disco.wav"), std::nullopt);
  EXPECT_EQ(Match("{user}/{genres}.wav", "u/.wav"), std::nullopt);
  EXPECT_EQ(Match("in/{user}", "out/u"), std::nullopt);
  EXPECT_EQ(Match("{user}", ""), std::nullopt);
}

// What stands for the file's name was a column of each table, which no script expects.
TEST(PartitionFormatTest, BracesWithoutANameAreAnyTextAndNoColumn) {
  EXPECT_EQ(Match("{Store}/{Brand}/{}", "1000/tropicana/week.csv"), (Values{"1000", "tropicana"}));
  EXPECT_EQ(Match("{}/{a}.{}", "x/b.c.csv"), (Values{"b.c"}));
  EXPECT_EQ(Match("{Store}/{}", "1000/tropicana/week.csv"), std::nullopt) << "no '/' in it";
  EXPECT_EQ(Match("{Store}/{}", "1000/"), std::nullopt) << "one character or more";
  EXPECT_THAT(PartitionFormat::Parse("{a}/{}/{b}")->names(), ElementsAre("a", "b"));
  EXPECT_THAT(BadFormat("{a}{}"), HasSubstr("nothing stands in front of the key {}"));
  EXPECT_THAT(BadFormat("{}{a}"), HasSubstr("nothing stands in front of the key a"));
  EXPECT_THAT(BadFormat("{}"), HasSubstr("it has no key"));
  EXPECT_THAT(BadFormat("{:yyyy}"), HasSubstr("a key has no name"));
  const auto context = PathContext::Make("{Store}/{}", {});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(*context->Of("7/a.csv"), R"({"Store":"7"})");
  EXPECT_EQ(context->Columns(), R"([{"name":"Store"}])");
  EXPECT_EQ(context->Values("7/a.csv"), R"(["7"])");
}

TEST(PartitionFormatTest, AnEarlierNameGetsAsMuchAsItCan) {
  EXPECT_EQ(Match("{file_name}.{extension}", "a.b.csv"), (Values{"a.b", "csv"}));
  EXPECT_EQ(Match("{a}-{b}-x", "1-2-3-x"), (Values{"1-2", "3"}));
  EXPECT_EQ(Match("{a}é{b}", "1é2"), (Values{"1", "2"}));
}

TEST(PartitionFormatTest, DatesAreDigitsInTheirPlaces) {
  EXPECT_EQ(Match("{user}/{day:yyyy-MM-dd}.csv", "u/2024-02-29.csv"), (Values{"u", "2024-02-29"}));
  EXPECT_EQ(Match("{at:yyyy/MM/dd/HH}/{n}", "2024/02/29/23/x"), (Values{"2024/02/29/23", "x"}));
  EXPECT_EQ(Match("{name}{at:yyyyMM}", "log202402"), (Values{"log", "202402"}));
  EXPECT_EQ(Match("{day:yyyy}.csv", "20x4.csv"), std::nullopt);
  EXPECT_EQ(Match("{day:yyyy}", "202"), std::nullopt);
}

TEST(PartitionFormatTest, WithAYearItIsADate) {
  const auto dates = [](std::string_view format) {
    const auto parsed = PartitionFormat::Parse(format);
    return parsed.ok() ? parsed->dates() : std::vector<std::string>{parsed.error().message};
  };
  EXPECT_THAT(dates("{d:yyyy/MM/dd}/{user}/{n:HH}"), ElementsAre("yyyy/MM/dd", "", ""));
  EXPECT_THAT(dates("{a:yyyyMMddTHHmmss}"), ElementsAre("yyyyMMddTHHmmss"));
  for (const char* format : {"{a:yy-MM}", "{a:yyyy-M}", "{a:yyyyMMMM}", "{a:yyyyMMyyyy}"}) {
    EXPECT_THAT(dates(format), ElementsAre(HasSubstr("the date of the key a is to be written with "
                                                     "yyyy, MM, dd, HH, mm and ss")))
        << format;
  }
}

TEST(PartitionFormatTest, DaysThatThereAre) {
  EXPECT_EQ(DateOf("yyyy/MM/dd", "2024/02/29"), "2024-02-29T00:00:00");
  EXPECT_EQ(DateOf("yyyy", "2024"), "2024-01-01T00:00:00");
  EXPECT_EQ(DateOf("dd.MM.yyyy HHmmss", "03.04.2024 235958"), "2024-04-03T23:59:58");
  for (const char* day : {"2023/02/29", "2024/13/01", "2024/00/01", "2024/01/00", "2024/04/31",
                          "1677/01/01", "2262/01/01"}) {
    EXPECT_EQ(DateOf("yyyy/MM/dd", day), std::nullopt) << day;
  }
  for (const char* time : {"2024 24:00:00", "2024 00:60:00", "2024 00:00:60"}) {
    EXPECT_EQ(DateOf("yyyy HH:mm:ss", time), std::nullopt) << time;
  }
}

TEST(PartitionFormatTest, BadFormatsSayWhy) {
  EXPECT_THAT(BadFormat("a/b"), HasSubstr("partitionFormat a/b: it has no key"));
  EXPECT_THAT(BadFormat("{a"), HasSubstr("not closed"));
  EXPECT_THAT(BadFormat("{a{b}}"), HasSubstr("not closed"));
  EXPECT_THAT(BadFormat("a}"), HasSubstr("not opened"));
  EXPECT_THAT(BadFormat("{}"), HasSubstr("it has no key"));
  EXPECT_THAT(BadFormat("{:yyyy}"), HasSubstr("no name"));
  EXPECT_THAT(BadFormat("{day:}"), HasSubstr("no date stands behind the colon of the key day"));
  EXPECT_THAT(BadFormat("{a}/{a}"), HasSubstr("the key a stands in it twice"));
  EXPECT_THAT(BadFormat("{a}{b}"), HasSubstr("in front of the key b"));
}

// Would take 2^60 steps if it tried all ways.
TEST(PartitionFormatTest, NoPathTakesLong) {
  std::string format = "{k0}";
  for (int i = 1; i < 60; ++i) format += "a{k" + std::to_string(i) + "}";
  EXPECT_EQ(Match(format + "b", std::string(250, 'a')), std::nullopt);
  EXPECT_NE(Match(format + "b", std::string(250, 'a') + "b"), std::nullopt);
}

TEST(PathContextTest, KeysInTheOrderOfPartitionKeys) {
  const std::string format = "{user}/{season}/{genres}.wav";
  const auto context = PathContext::Make(format, {"genres", "user"});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(*context->Of("user4/fall/piano.wav"), R"({"genres":"piano","user":"user4"})");
  EXPECT_EQ(*PathContext::Make(format, {})->Of("u/s/\"g\".wav"),
            R"({"user":"u","season":"s","genres":"\"g\""})");
  EXPECT_EQ(*PathContext::Make("", {})->Of("any"), "");
  EXPECT_FALSE(PathContext::Make("", {"user"}).ok());
}

// All names of the format are columns of a table, whatever the keys are.
TEST(PathContextTest, ColumnsOfTables) {
  const auto context = PathContext::Make("{Store}/{day:yyyy/MM/dd}/{n}.csv", {"Store"});
  ASSERT_TRUE(context.ok());
  EXPECT_EQ(*context->Of("7/2024/02/29/a.csv"), R"({"Store":"7"})");
  EXPECT_EQ(context->Columns(), R"([{"name":"Store"},{"name":"day","date":true},{"name":"n"}])");
  EXPECT_EQ(context->Values("7/2024/02/29/a\"b.csv"), R"(["7","2024-02-29T00:00:00","a\"b"])");
  EXPECT_EQ(*PathContext::Make("{day:yyyy/MM/dd}/{n}.csv", {"day"})->Of("2024/02/29/a.csv"),
            R"({"day":"2024/02/29"})");
}

TEST(PathContextTest, ADayThatThereIsNotIsAnErrorThatNamesIt) {
  const auto found = PathContext::Make("{day:yyyy-MM-dd}.csv", {})->Of("2023-02-29.csv");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kInvalid);
  EXPECT_THAT(found.error().message, HasSubstr("the file 2023-02-29.csv: 2023-02-29 is no date "
                                               "(yyyy-MM-dd in partitionFormat"));
}

// Two names that are not UTF-8 stay two.
TEST(PathContextTest, ValuesThatAreNotUtf8) {
  const auto context = PathContext::Make("{user}.csv", {"user"});
  EXPECT_EQ(*context->Of("\xff.csv"), R"({"user":"\udcff"})");
  EXPECT_EQ(*context->Of("a\n\xfe\xc3\xa4.csv"), "{\"user\":\"a\\u000a\\udcfe\xc3\xa4\"}");
}

TEST(PathContextTest, AFileThatDoesNotMatchIsAnErrorThatNamesBoth) {
  const auto context = PathContext::Make("{user}/{genres}.wav", {"user"});
  ASSERT_TRUE(context.ok());
  const auto found = context->Of("u/readme.txt");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, Code::kInvalid);
  EXPECT_THAT(found.error().message,
              HasSubstr("u/readme.txt does not match partitionFormat {user}/{genres}.wav"));
}

TEST(PathContextTest, AKeyThatIsNotInTheFormat) {
  const auto context = PathContext::Make("{user}/{genres}.wav", {"user", "season"});
  ASSERT_FALSE(context.ok());
  EXPECT_THAT(context.error().message, HasSubstr("does not hold the partition key season"));
}

}  // namespace
}  // namespace parallelrun::plan
