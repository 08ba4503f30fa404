#include "job/side_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <string>
#include <vector>

#include "api/job.h"
#include "api/settings.h"
#include "job/job_state.h"
#include "job/losses.h"
#include "job/verdict.h"

namespace parallelrun::job {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

const std::string kOfAllFiles(64, 'a');

std::string ListOf(const std::vector<std::string>& names,
                   const std::string& folder = "process000-1f/7") {
  std::string files;
  for (const std::string& name : names) {
    files += fmt::format(R"({}["{}",3,"{}"])", files.empty() ? "" : ",", name, kOfAllFiles);
  }
  return fmt::format(R"({{"folder":"{}","files":[{}]}})", folder, files);
}

TEST(SideList, NamesTheFilesOfAnAttempt) {
  const Result<SideList> list = ParseSideList(ListOf({"a/b.txt", "c"}));
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->folder, "process000-1f/7");
  ASSERT_EQ(list->files.size(), 2u);
  EXPECT_EQ(list->files[0].name, "a/b.txt");
  EXPECT_EQ(list->files[0].bytes, 3u);
  EXPECT_EQ(list->files[0].sha256[31], 0xaa);
  EXPECT_EQ(*ParseSideList("{}"), SideList());
}

TEST(SideList, WhatNoWorkerMakesIsRefused) {
  const std::string long_name(1025, 'x');
  const std::vector<std::string> bad = {
      "",
      "[]",
      "no JSON",
      ListOf({}),
      ListOf({"b", "a"}),
      ListOf({"a", "a"}),
      ListOf({"/a"}),
      ListOf({"../a"}),
      ListOf({"a/../../b"}),
      ListOf({"a//b"}),
      ListOf({"a/"}),
      ListOf({"."}),
      ListOf({""}),
      ListOf({"a\\u0000b"}),
      ListOf({long_name}),
      ListOf({"a"}, "process000"),
      ListOf({"a"}, "../7"),
      ListOf({"a"}, "a/b/7"),
      ListOf({"a"}, ""),
      R"({"folder":"p/1","files":[["a",-1,"x"]]})",
      R"({"folder":"p/1","files":[["a",1,"x"]]})",
      R"({"folder":"p/1","files":["a"]})",
      "{" + std::string(kMostSideLine, ' ') + "}",
  };
  for (const std::string& line : bad) {
    EXPECT_EQ(ParseSideList(line).error().code, Code::kCorrupt) << line.substr(0, 200);
  }
}

TEST(SideList, TheLineComesOffInPieces) {
  const std::string rows = ListOf({"a"}) + "\nrow 1\nrow 2\n";
  for (size_t cut = 0; cut <= rows.size(); ++cut) {
    SideLine line;
    std::string rest(*line.RowsIn(std::string_view(rows).substr(0, cut), true));
    rest += *line.RowsIn(std::string_view(rows).substr(cut), false);
    EXPECT_EQ(rest, "row 1\nrow 2\n") << cut;
    EXPECT_EQ(line.line(), ListOf({"a"}));
  }
  SideLine line;
  EXPECT_EQ(*line.RowsIn("{}\nx\n", true), "x\n");
  EXPECT_EQ(*line.RowsIn("{", true), "");  // of the next result
  EXPECT_EQ(line.line(), std::nullopt);
  EXPECT_EQ(*line.RowsIn("}\n", false), "");
  EXPECT_EQ(line.line(), "{}");
}

TEST(SideList, ALineWithoutAnEndIsNotGathered) {
  SideLine line;
  EXPECT_TRUE(line.RowsIn(std::string(kMostSideLine - 1, 'x'), true).ok());
  EXPECT_FALSE(line.RowsIn("x", false).ok());
  EXPECT_FALSE(line.RowsIn("\n", false).ok());
  EXPECT_EQ(line.line(), std::nullopt);
  EXPECT_TRUE(line.RowsIn("{}\n", true).ok());
}

TEST(SideNames, AFileIsOfOneMiniBatch) {
  SideNames names;
  names.Add(2, "{}");
  EXPECT_TRUE(names.empty());
  names.Add(3, ListOf({"a", "b"}));
  EXPECT_FALSE(names.empty());
  EXPECT_TRUE(names.Has("b"));
  EXPECT_FALSE(names.Has("c"));
  names.Add(3, ListOf({"a"}));  // again, of the same one
  names.Add(4, ListOf({"c"}));
  names.Add(5, "{}");
  EXPECT_THAT(names.trouble(), IsEmpty());
  names.Add(7, ListOf({"b"}));
  EXPECT_THAT(names.trouble(),
              HasSubstr("the mini-batches 3 and 7 have both written the side file b. "));
  names.Add(8, "nothing");
  EXPECT_THAT(names.trouble(), HasSubstr("3 and 7"));
}

TEST(SideNames, AFileIsNoFolder) {
  SideNames names;
  names.Add(1, ListOf({"a/b/c", "a/d"}));
  names.Add(2, ListOf({"a/b/e"}));
  EXPECT_THAT(names.trouble(), IsEmpty());
  SideNames more = names;
  names.Add(3, ListOf({"a/b"}));
  EXPECT_THAT(names.trouble(), HasSubstr("a/b is a side file of mini-batch 3, and the folder of"));
  more.Add(4, ListOf({"a/d/e"}));
  EXPECT_THAT(more.trouble(), HasSubstr("a/d is a side file of mini-batch 1, and the folder of"));
}

TEST(SideNames, WhatIsVoidIsForgotten) {
  SideNames names;
  names.Add(3, ListOf({"a"}));
  names.Add(4, ListOf({"b"}));
  names.Void({9, 3});
  names.Add(5, ListOf({"a"}));
  EXPECT_THAT(names.trouble(), IsEmpty());
  names.Add(6, ListOf({"b"}));
  EXPECT_THAT(names.trouble(), HasSubstr("4 and 6"));
}

TEST(SideNames, AreBounded) {
  SideNames names;
  names.Add(1, ListOf({"a", "b"}), 3);
  EXPECT_THAT(names.trouble(), IsEmpty());
  names.Add(2, ListOf({"c", "d"}), 3);
  EXPECT_THAT(names.trouble(),
              HasSubstr("more than 3 side files, with those of mini-batch 2. Write fewer"));
}

TEST(SideNames, AListThatCannotBeReadIsSaid) {
  SideNames names;
  names.Add(1, "rows");
  EXPECT_THAT(names.trouble(), HasSubstr("mini-batch 1: the rows do not begin with a list"));
}

TEST(SideFilesOfAJob, AreKnownByItsPlanSettings) {
  api::Job job;
  EXPECT_FALSE(StagesSideFiles(api::PlanSettings(job, {})));
  job.spec.output.side_files = api::SideFiles::kStaged;
  EXPECT_TRUE(StagesSideFiles(api::PlanSettings(job, {})));
  EXPECT_FALSE(StagesSideFiles("no JSON"));
}

class SideFilesOfAState : public testing::Test {
 protected:
  void Begin(const std::string& plan_settings) {
    SettingsRecord settings;
    settings.generation = 1;
    settings.plan_settings = plan_settings;
    Apply(settings);
    TabularChunk table;
    table.path = "/in/a.csv";
    table.slices = {{0, 10, 1}, {10, 10, 1}, {20, 10, 1}};
    PlanChunkRecord chunk;
    chunk.content = table;
    Apply(chunk);
    Apply(PlanEndRecord{3, 3});
  }
  void Apply(const Record& record, uint32_t rows = 0) {
    const Status applied = state_.Apply(record, {1, offset_, 1}, {1, offset_, rows});
    ASSERT_TRUE(applied.ok()) << applied.error().message;
    offset_ += 100;
  }
  void Succeed(BatchId id, const std::string& rows, uint64_t fence = 1) {
    ResultRecord result;
    result.id = id;
    result.fence = {1, fence};
    result.items_succeeded = 1;
    result.row_count = 1;
    result.rows = rows;
    Apply(result, static_cast<uint32_t>(rows.size()));
  }
  std::string Reason() const {
    const std::optional<Verdict> verdict =
        Decide(state_, FailureRules(), [](BatchId) { return std::string(); });
    return verdict ? verdict->reason + ": " + verdict->message : "";
  }

  JobState state_;
  uint64_t offset_ = 0;
};

constexpr char kStagedPlan[] = R"({"output":{"sideFiles":"Staged"}})";

TEST_F(SideFilesOfAState, AClashEndsTheJobAtOnce) {
  Begin(kStagedPlan);
  Succeed(0, ListOf({"a"}) + "\nrow\n");
  EXPECT_EQ(Reason(), "");
  Succeed(2, ListOf({"a"}) + "\nrow\n");
  EXPECT_THAT(Reason(), HasSubstr("SideFilesUnusable: the mini-batches 0 and 2 have both"));
}

TEST_F(SideFilesOfAState, TheListMayComeInParts) {
  Begin(kStagedPlan);
  const std::string rows = ListOf({"a"}) + "\nrow\n";
  Apply(RowsRecord{0, {1, 1}, "garbage of an attempt that was given up"}, 39);
  Apply(RowsRecord{0, {1, 2}, std::string_view(rows).substr(0, 20)}, 20);
  Apply(RowsRecord{0, {1, 2}, std::string_view(rows).substr(20, 5)}, 5);
  Succeed(0, rows.substr(25), 2);
  Apply(RowsRecord{1, {1, 3}, rows}, static_cast<uint32_t>(rows.size()));
  EXPECT_EQ(Reason(), "");
  Succeed(1, "", 3);
  EXPECT_THAT(Reason(), HasSubstr("the mini-batches 0 and 1 have both written the side file a"));
}

TEST_F(SideFilesOfAState, ResultsThatAreVoidGiveTheirNamesBack) {
  Begin(kStagedPlan);
  Succeed(0, ListOf({"a"}) + "\n");
  Apply(AgainRecord{0, 0, {{0, 1, 1}}});
  Succeed(1, ListOf({"a"}) + "\n");
  EXPECT_EQ(Reason(), "");
}

TEST_F(SideFilesOfAState, WithoutStagingRowsAreRows) {
  Begin("{}");
  Succeed(0, ListOf({"a"}) + "\n");
  Succeed(1, ListOf({"a"}) + "\n");
  EXPECT_EQ(Reason(), "");
}

}  // namespace
}  // namespace parallelrun::job
