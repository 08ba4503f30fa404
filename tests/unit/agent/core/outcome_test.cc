#include "agent/core/outcome.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

TEST(Outcome, ByDefaultItIsHandedBack) {
  EXPECT_EQ(Outcome().kind, job::Finished::Kind::kReturned);
}

TEST(Outcome, NothingTakesLessTimeThanItsRun) {
  ResultAnswer answer;
  answer.run_ns = 5'000'000;
  EXPECT_EQ(Succeeded(answer, milliseconds(7)).elapsed_ns, 7'000'000U);
  EXPECT_EQ(Succeeded(answer, milliseconds(3)).elapsed_ns, 5'000'000U);
  EXPECT_EQ(Succeeded(answer, milliseconds(-3)).elapsed_ns, 5'000'000U) << "another clock";
}

TEST(Outcome, ADeathAndATimeOutSayWhatTheyWere) {
  const auto of = [](const Ended& ended, const Orphan& orphan) {
    job::OutputRanges output;
    output.stdout_end = 5;
    return OfDeath(3, 7, ended, orphan, "exited with status 3", output);
  };
  Orphan orphan;
  orphan.fault = Fault::kItsOwn;
  orphan.ran = milliseconds(2);
  orphan.at_work = true;
  const Outcome died = of({}, orphan);
  EXPECT_EQ(died.kind, job::Finished::Kind::kFailed);
  EXPECT_EQ(died.cause, job::Cause::kProcessEnded);
  EXPECT_EQ(died.message, "process007 exited with status 3");
  EXPECT_EQ(died.log, "user/stderr/3/process007.stderr.txt");
  EXPECT_EQ(died.run_ns, 2'000'000U);
  EXPECT_EQ(died.output.stdout_end, 5U);
  orphan.ran = milliseconds(-2);
  orphan.at_work = false;
  EXPECT_EQ(of({}, orphan).run_ns, 0U);
  EXPECT_EQ(of({}, orphan).output.stdout_end, 0U) << "that of another one";
  orphan.fault = Fault::kTimedOut;
  Ended ended;
  ended.killed_for = {1, 9, job::Cause::kRunTimeout, "late"};
  EXPECT_EQ(of(ended, orphan).error_kind, "RunTimeout");
  EXPECT_EQ(of(ended, orphan).message, "late");
  ended.killed_for.cause = job::Cause::kOverheadTimeout;
  EXPECT_EQ(of(ended, orphan).error_kind, "OverheadTimeout");
}

TEST(Outcome, RowsAreLinesThatEndAndAsManyAsSaid) {
  ResultAnswer answer;
  answer.rows = "b\n";
  answer.row_count = 2;
  EXPECT_TRUE(WholeRows("a\n", answer, Rows::kLines));
  EXPECT_FALSE(WholeRows("", answer, Rows::kLines)) << "one is missing";
  EXPECT_FALSE(WholeRows("a\n", answer, Rows::kNone)) << "there are to be none";
  answer.rows = "b";
  EXPECT_FALSE(WholeRows("a\n", answer, Rows::kLines)) << "it does not end";
  answer.rows = "";
  answer.row_count = 1;
  EXPECT_TRUE(WholeRows("a\n", answer, Rows::kLines));
  EXPECT_FALSE(WholeRows("a", answer, Rows::kLines));
}

// In front of the rows, whatever these are, and no matter where the parts end.
TEST(Outcome, WithStagedSideFilesTheirListStandsInFront) {
  const std::string list =
      R"({"folder":"process000-1f/3","files":[["a.txt",3,")" + std::string(64, '0') + "\"]]}\n";
  for (const std::string& front : {std::string("{}\n"), list}) {
    for (const std::string& rows : {std::string(), std::string("a\nb\n")}) {
      const std::string all = front + rows;
      ResultAnswer answer;
      answer.row_count = rows.empty() ? 0 : 2;
      for (size_t cut = 0; cut <= all.size(); ++cut) {
        answer.rows = std::string_view(all).substr(cut);
        EXPECT_TRUE(WholeRows(all.substr(0, cut), answer, Rows::kLines, true)) << cut;
        EXPECT_EQ(WholeRows(all.substr(0, cut), answer, Rows::kNone, true), rows.empty()) << cut;
      }
    }
  }
  ResultAnswer answer;
  for (const char* wrong : {"", "a\n", "{}", "{\"folder\":\"..\"}\n", "{}\na"}) {
    answer.rows = wrong;
    EXPECT_FALSE(WholeRows("", answer, Rows::kLines, true)) << wrong;
  }
  answer.rows = "{}\na\n";
  answer.row_count = 2;
  EXPECT_FALSE(WholeRows("", answer, Rows::kLines, true)) << "the list is no row";
}

TEST(Outcome, RowsOfParquetAreOneRowGroupOfAsManyAsSaid) {
  ResultAnswer answer;
  answer.row_count = 2;
  answer.rows = "\"columns\":[{\"name\":\"a\",\"type\":\"null\"}]}\n";
  const std::string begin = R"({"rows":2,"codec":"none",)";
  EXPECT_TRUE(WholeRows(begin, answer, Rows::kRowGroup));
  EXPECT_FALSE(WholeRows(begin, answer, Rows::kNone));
  EXPECT_FALSE(WholeRows("", answer, Rows::kRowGroup)) << "the first part is missing";
  answer.row_count = 1;
  EXPECT_FALSE(WholeRows(begin, answer, Rows::kRowGroup)) << "another number";
  answer.row_count = 2;
  answer.rows = "a\nb\n";
  EXPECT_FALSE(WholeRows("", answer, Rows::kRowGroup)) << "lines";
  answer.rows = "";
  EXPECT_FALSE(WholeRows("", answer, Rows::kRowGroup)) << "nothing";
  answer.row_count = 0;
  EXPECT_TRUE(WholeRows("", answer, Rows::kRowGroup)) << "no rows";
  answer.rows = "a";
  EXPECT_FALSE(WholeRows("", answer, Rows::kRowGroup)) << "no rows, and bytes";
}

}  // namespace
}  // namespace parallelrun::agent
