#include "coordinator/core/run_end.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace parallelrun::coordinator {
namespace {

using Do = RunEnd::Do;
using Facts = RunEnd::Facts;
using Phase = Ending::Phase;

const Instant kEpochBegins{seconds(1000)};

std::string Words(const std::vector<Do>& todo) {
  static const char* const kWords[] = {"look",    "pause",     "flush", "publish", "folder?",
                                       "nothing", "name-last", "stop",  "reports", "results",
                                       "token",   "give-back", "logs",  "leave"};
  std::string words;
  for (const Do step : todo)
    words += (words.empty() ? "" : " ") + std::string(kWords[static_cast<size_t>(step)]);
  return words;
}

// What happens, so many seconds after the epoch began, and what is to be done then.
struct Row {
  double at;
  std::function<void(RunEnd&, Facts&)> happens;
  const char* todo;
};

class RunEndTest : public ::testing::Test {
 protected:
  RunEndTest() : RunEndTest(Publishes()) {}
  explicit RunEndTest(RunEnd::Options options) : end_(std::move(options), kEpochBegins) {}
  static RunEnd::Options Publishes() {
    RunEnd::Options options;
    options.publishes = true;
    options.output_folder = "/out";
    options.state_folder = "/state";
    options.ownerless_limit = std::chrono::hours(24);
    return options;
  }
  static RunEnd::Options OfTheScript() {
    RunEnd::Options options = Publishes();
    options.publishes = false;
    return options;
  }
  void Walk(const std::vector<Row>& rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].happens(end_, facts_);
      now_ = kEpochBegins + Duration(static_cast<int64_t>(rows[i].at * 1e6));
      EXPECT_EQ(Words(end_.Next(facts_, now_)), rows[i].todo) << "row " << i;
    }
  }
  void Expect(CoordinatorExit exit, const std::string& because) const {
    EXPECT_TRUE(end_.left());
    EXPECT_EQ(end_.exit(), exit);
    EXPECT_EQ(end_.because(), because);
  }
  static Error Failed(Code code) { return {code, "why"}; }

  Instant now_ = kEpochBegins;
  Facts facts_;
  RunEnd end_;
};

class RunEndWithLogsTest : public RunEndTest {
 protected:
  static RunEnd::Options SendsLogs() {
    RunEnd::Options options = Publishes();
    options.sends_logs = true;
    return options;
  }
  RunEndWithLogsTest() : RunEndTest(SendsLogs()) {}
};

const auto kNothing = [](RunEnd&, Facts&) {};

auto Is(Phase phase) {
  return [phase](RunEnd&, Facts& facts) { facts.phase = phase; };
}
auto Done(Do step) {
  return [step](RunEnd& end, Facts&) { end.Done(step); };
}
auto Published(const Status& status, double at) {
  return [status, at](RunEnd& end, Facts&) {
    end.Published(status, kEpochBegins + Duration(static_cast<int64_t>(at * 1e6)));
  };
}
const auto kAllLeave = [](RunEnd&, Facts& facts) { facts.nodes = 0; };
const auto kNamed = [](RunEnd& end, Facts&) { end.LastNamed(); };

TEST_F(RunEndTest, AJobThatSucceedsGoesThroughItsEndStepByStep) {
  facts_.nodes = 2;
  Walk({
      {0, [](RunEnd&, Facts& facts) { facts.wants_look = true; }, "look"},
      {1, [](RunEnd&, Facts& facts) { facts = {.nodes = 2, .durable = false}; }, "flush"},
      {2, [](RunEnd&, Facts& facts) { facts.phase = Phase::kDeciding, facts.decided = true; },
       "flush"},
      {3, [](RunEnd&, Facts& facts) { facts.durable = facts.succeeded = true; }, ""},
      {4, Is(Phase::kFinalizing), "publish"},
      {5, kNothing, ""},
      // Until the record of it is durable the phase stays.
      {6, Published({}, 6), ""},
      {7, Is(Phase::kEnded), "name-last"},
      {8, kAllLeave, ""},
      {9, kNamed, "stop reports"},
      {10, kNothing, ""},
      {11, Done(Do::kWriteReports), "results"},
      {12, Done(Do::kNameResults), "token"},
      {13, Done(Do::kRemoveToken), "give-back"},
      {14, Done(Do::kWriteReports), ""},  // it has been told
      {15, Done(Do::kGiveBack), "leave"},
      {16, kNothing, ""},
  });
  Expect(CoordinatorExit::kSucceeded, "");
  EXPECT_TRUE(end_.over());
  EXPECT_FALSE(end_.hung());
}

TEST_F(RunEndTest, AJobThatFailsHasReportsTooAndPublishesNothing) {
  facts_.decided = true;
  Walk({
      {0, Is(Phase::kEnded), "name-last"},
      {1, kNamed, "stop reports"},
      {2, Done(Do::kWriteReports), "results"},
      {3, Done(Do::kNameResults), "token"},
      {4, Done(Do::kRemoveToken), "give-back"},
      {5, Done(Do::kGiveBack), "leave"},
  });
  Expect(CoordinatorExit::kFailed, "");
}

TEST_F(RunEndTest, NodesHaveTheirTimeToLeaveAndNoMore) {
  facts_ = {.phase = Phase::kEnded, .decided = true, .succeeded = true, .nodes = 1};
  Walk({
      {0, kNothing, "name-last"},
      {1, kNamed, ""},
      {30, kNothing, ""},
      {30.1, kNothing, "stop reports"},
  });
}

TEST_F(RunEndTest, NamesThatAVolumeDoesNotGiveAreWaitedForAsLong) {
  facts_ = {.phase = Phase::kEnded, .decided = true};
  Walk({{0, kNothing, "name-last"}, {30, kNothing, ""}, {30.1, kNothing, "stop reports"}});
}

TEST_F(RunEndTest, WhatThereIsNoRoomForIsPublishedOnceThereIs) {
  facts_ = {.phase = Phase::kFinalizing, .decided = true, .succeeded = true};
  Walk({
      {0, kNothing, "publish"},
      {1, Published(Failed(Code::kNoSpace), 1), "pause"},
      {1.5, kNothing, ""},
      {2, kNothing, "publish"},
      {3, Published(Failed(Code::kUnavailable), 3), "pause"},
      {4, kNothing, "publish"},
      {5, Published({}, 5), ""},
      {60, kNothing, ""},
  });
  EXPECT_EQ(end_.no_room(), "why");
  EXPECT_FALSE(end_.ending());
}

TEST_F(RunEndTest, TheLedgerIsFlushedAgainOnceThereMayBeRoom) {
  facts_.durable = false;
  Walk({
      {0, kNothing, "flush"},
      {1,
       [](RunEnd& end, Facts&) {
         end.FlushFailed(Failed(Code::kNoSpace), kEpochBegins + seconds(1));
       },
       "pause"},
      {1.9, kNothing, ""},
      {2, kNothing, "flush"},
  });
}

// So does a store that keeps the ledger, and is away.
TEST_F(RunEndTest, ALedgerThatCannotBeReachedIsTriedAgain) {
  facts_ = {.nodes = 1, .durable = false};
  Walk({
      {0, kNothing, "flush"},
      {1,
       [](RunEnd& end, Facts&) {
         end.FlushFailed(Failed(Code::kUnavailable), kEpochBegins + seconds(1));
       },
       "pause"},
      {1.9, kNothing, ""},
      {2, kNothing, "flush"},
  });
}

TEST_F(RunEndTest, ALedgerThatANewerEpochHasTakenIsLeftToIt) {
  facts_ = {.nodes = 1, .durable = false};
  Walk({{0, [](RunEnd& end, Facts&) { end.FlushFailed(Failed(Code::kStale), kEpochBegins); },
         "stop leave"}});
  Expect(CoordinatorExit::kSuperseded, "superseded: why");
}

TEST_F(RunEndTest, AnyOtherFailureOfTheLedgerEndsTheEpoch) {
  facts_ = {.nodes = 1, .durable = false};
  Walk({
      {0, [](RunEnd& end, Facts&) { end.FlushFailed(Failed(Code::kInternal), kEpochBegins); },
       "stop token"},
      // The next epoch keeps its output, and its nodes.
      {1, Done(Do::kRemoveToken), "leave"},
  });
  Expect(CoordinatorExit::kDiskFailed, "the ledger cannot be written: why");
}

TEST_F(RunEndTest, WhoIsSupersededShowsNothingAndLeavesWhatIsItsSuccessors) {
  facts_ = {.phase = Phase::kFinalizing, .decided = true, .durable = false, .superseded = true};
  Walk({{0, kNothing, "stop leave"}});
  Expect(CoordinatorExit::kSuperseded, "superseded by a newer epoch");
}

TEST_F(RunEndTest, AVerdictIsNotToldByWhoIsSupersededAfterIt) {
  facts_ = {.phase = Phase::kEnded, .decided = true, .succeeded = true, .superseded = true};
  Walk({{0, kNothing, "stop leave"}});
  Expect(CoordinatorExit::kSuperseded, "superseded by a newer epoch");
}

TEST_F(RunEndTest, WithoutItsLedgerNoEpochGoesOnOrSucceeds) {
  facts_ = {.phase = Phase::kEnded, .decided = true, .succeeded = true, .lost = "it is gone"};
  Walk({{0, kNothing, "stop token"}, {1, Done(Do::kRemoveToken), "leave"}});
  Expect(CoordinatorExit::kCannotStart, "it is gone");
}

TEST_F(RunEndTest, APublicationThatFailsEndsTheEpochInItsOwnWay) {
  const std::string kept =
      "the output is not published: why. Every result is kept in /state: resume the job, which "
      "publishes them";
  const struct {
    Code code;
    const char* todo;
    CoordinatorExit exit;
    std::string because;
  } cases[] = {
      {Code::kStale, "stop leave", CoordinatorExit::kSuperseded, "superseded: why"},
      {Code::kExists, "stop token give-back leave", CoordinatorExit::kNotPublished, kept},
      {Code::kInvalid, "stop token give-back leave", CoordinatorExit::kNotPublished, kept},
      {Code::kInternal, "stop token leave", CoordinatorExit::kDiskFailed,
       "the output cannot be written: why"},
  };
  for (const auto& one : cases) {
    RunEnd end(Publishes(), kEpochBegins);
    const Facts facts{.phase = Phase::kFinalizing, .decided = true, .succeeded = true};
    EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "publish");
    end.Published(Failed(one.code), kEpochBegins);
    std::vector<Do> all;
    for (int i = 0; i < 5 && !end.left(); ++i) {
      const std::vector<Do> todo = end.Next(facts, kEpochBegins);
      all.insert(all.end(), todo.begin(), todo.end());
      if (!todo.empty()) end.Done(todo.back());
    }
    EXPECT_EQ(Words(all), one.todo);
    EXPECT_EQ(end.exit(), one.exit);
    EXPECT_EQ(end.because(), one.because);
  }
}

TEST_F(RunEndTest, WhereTheScriptsFilesAreTheResultTheirFolderIsLookedAt) {
  RunEnd end(OfTheScript(), kEpochBegins);
  Facts facts{.phase = Phase::kFinalizing, .decided = true, .succeeded = true};
  EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "folder?");
  EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "");
  end.OutputFolderSeen(true);
  EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "nothing");
  facts.phase = Phase::kEnded;
  EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "name-last");
}

TEST_F(RunEndTest, AFolderThatCannotBeLookedAtMayWellBeThere) {
  RunEnd end(OfTheScript(), kEpochBegins);
  const Facts facts{.phase = Phase::kFinalizing, .decided = true, .succeeded = true};
  EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "folder?");
  end.OutputFolderSeen(Failed(Code::kInternal));
  EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "nothing");
}

TEST_F(RunEndTest, NoJobSucceedsWhoseOutputFolderIsGone) {
  RunEnd end(OfTheScript(), kEpochBegins);
  const Facts facts{.phase = Phase::kFinalizing, .decided = true, .succeeded = true};
  EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "folder?");
  end.OutputFolderSeen(false);
  EXPECT_EQ(Words(end.Next(facts, kEpochBegins)), "stop token");
  EXPECT_EQ(end.exit(), CoordinatorExit::kCannotStart);
  EXPECT_EQ(end.because().find("the output folder /out is not there any more"), 0U);
}

TEST_F(RunEndTest, ASignalHandsOverUnlessThereIsAVerdict) {
  facts_.nodes = 2;
  Walk({
      {0, [](RunEnd& end, Facts&) { end.HandOver(); }, "stop token"},
      {1, Done(Do::kRemoveToken), "leave"},
  });
  Expect(CoordinatorExit::kDrained, "ended by a signal: the next epoch goes on");

  RunEnd decided(Publishes(), kEpochBegins);
  decided.HandOver();
  const Facts facts{.phase = Phase::kDeciding, .decided = true, .durable = false};
  EXPECT_EQ(Words(decided.Next(facts, kEpochBegins)), "flush");
  EXPECT_FALSE(decided.ending());
}

TEST_F(RunEndTest, ADrainWaitsForTheNodesAndForWhatTheyHaveSaid) {
  facts_ = {.phase = Phase::kDraining, .nodes = 1, .durable = false};
  Walk({
      {0, kNothing, "flush"},
      {1, kAllLeave, "flush"},
      {2, [](RunEnd&, Facts& facts) { facts.durable = true; }, "stop results"},
      {3, Done(Do::kNameResults), "token"},
      {4, Done(Do::kRemoveToken), "leave"},
  });
  Expect(CoordinatorExit::kDrained, "drained by request");
}

TEST_F(RunEndTest, ADrainWaitsForNoRoom) {
  facts_ = {.phase = Phase::kDraining, .nodes = 1, .durable = false, .paused = "the disk is full"};
  Walk({{0, kNothing, "flush"}, {1, kAllLeave, "flush stop results"}});
  EXPECT_EQ(end_.because(),
            "drained by request, without what there is no room for: the disk is full");
}

TEST_F(RunEndTest, WhatNobodyWantsEnds) {
  const double day = 24 * 3600;
  Walk({
      {day, kNothing, ""},
      {day + 1, [](RunEnd& end, Facts&) { end.Heard(kEpochBegins + seconds(10)); }, ""},
      {day + 9, [](RunEnd&, Facts& facts) { facts.nodes = 1; }, ""},
      {2 * day + 9, kAllLeave, ""},
      {2 * day + 10, kNothing, "stop token"},
  });
  EXPECT_EQ(end_.exit(), CoordinatorExit::kDrained);
}

TEST_F(RunEndTest, AVolumeThatHangsAtTheEndIsLeft) {
  facts_ = {.phase = Phase::kDraining};
  Walk({
      {0, kNothing, "stop results"},
      {29, Done(Do::kNameResults), "token"},
      {30, kNothing, ""},
      {30.1, kNothing, "leave"},
      {31, Done(Do::kRemoveToken), ""},
  });
  EXPECT_EQ(end_.hung(), Do::kRemoveToken);
}

TEST_F(RunEndTest, ReportsHaveAnHour) {
  facts_ = {.phase = Phase::kEnded, .decided = true};
  Walk({
      {0, kNamed, "name-last stop reports"},
      {3600, kNothing, ""},
      {3600.1, kNothing, "leave"},
  });
  EXPECT_EQ(end_.hung(), Do::kWriteReports);
  EXPECT_EQ(end_.exit(), CoordinatorExit::kFailed);
}

// A store that is slow keeps nobody else: what others wait for is done by then.
TEST_F(RunEndWithLogsTest, LogsGoToTheirStoreLast) {
  facts_.decided = true;
  Walk({
      {0, Is(Phase::kEnded), "name-last"},
      {1, kNamed, "stop reports"},
      {2, Done(Do::kWriteReports), "results"},
      {3, Done(Do::kNameResults), "token"},
      {4, Done(Do::kRemoveToken), "give-back"},
      {5, Done(Do::kGiveBack), "logs"},
      {3600, kNothing, ""},
      {3602, kNothing, "leave"},
  });
  Expect(CoordinatorExit::kFailed, "");
  EXPECT_EQ(end_.hung(), Do::kSendLogs);
}

TEST_F(RunEndWithLogsTest, LogsOfARunThatIsStoppedGoThereToo) {
  facts_ = {.phase = Phase::kDraining};
  Walk({
      {0, kNothing, "stop results"},
      {1, Done(Do::kNameResults), "token"},
      {2, Done(Do::kRemoveToken), "logs"},
      {3, Done(Do::kSendLogs), "leave"},
  });
  Expect(CoordinatorExit::kDrained, "drained by request");
}

TEST_F(RunEndWithLogsTest, TheNextEpochSendsTheLogsOfARunThatGoesOn) {
  Walk({
      {0, [](RunEnd& end, Facts&) { end.HandOver(); }, "stop token"},
      {1, Done(Do::kRemoveToken), "leave"},
  });
}

// What is heard of once the end has begun changes nothing of it.
TEST_F(RunEndTest, AnEndStands) {
  facts_ = {.phase = Phase::kDraining};
  Walk({
      {0, kNothing, "stop results"},
      {1,
       [](RunEnd& end, Facts& facts) {
         facts.superseded = facts.wants_look = true;
         facts.durable = false;
         end.FlushFailed(Failed(Code::kInternal), kEpochBegins);
         end.HandOver();
       },
       ""},
      {2, Done(Do::kNameResults), "token"},
      {3, Done(Do::kRemoveToken), "leave"},
  });
  Expect(CoordinatorExit::kDrained, "drained by request");
}

}  // namespace
}  // namespace parallelrun::coordinator
