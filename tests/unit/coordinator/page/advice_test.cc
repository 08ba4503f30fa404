#include "coordinator/page/advice.h"

#include <gmock/gmock.h>

namespace parallelrun::coordinator {
namespace {

using testing::HasSubstr;

constexpr uint64_t kNsInMs = 1'000'000;  // ns
constexpr uint64_t kNsInSecond = 1000 * kNsInMs;

// Of a process that had `attempts` with 10 items each, in `seconds`.
Figures::Sums SumsOf(uint64_t attempts, double run_ms, double elapsed_ms, double seconds) {
  Figures::Sums sums;
  sums.attempts = attempts;
  sums.items = 10 * attempts;
  sums.run_ns = static_cast<uint64_t>(run_ms * 1e6) * attempts;
  sums.elapsed_ns = static_cast<uint64_t>(elapsed_ms * 1e6) * attempts;
  sums.cpu_ns = sums.run_ns;
  sums.ended = Duration(static_cast<int64_t>(seconds * 1e6));
  return sums;
}

AdviceFacts FactsOf(const std::vector<Figures::Sums>& processes) {
  AdviceFacts facts;
  uint32_t number = 0;
  for (const Figures::Sums& sums : processes) {
    facts.processes.push_back({{0, number++}, sums});
    facts.total.attempts += sums.attempts;
    facts.total.failed += sums.failed;
    facts.total.items += sums.items;
    facts.total.run_ns += sums.run_ns;
    facts.total.failed_run_ns += sums.failed_run_ns;
    facts.total.elapsed_ns += sums.elapsed_ns;
    facts.total.cpu_ns += sums.cpu_ns;
    facts.process_ns += sums.span_ns();
  }
  return facts;
}

std::string AdviceText(const AdviceFacts& facts) {
  std::string text;
  for (const Advice& advice : AdviceOn(facts)) text += advice.found + ": " + advice.change + "\n";
  return text;
}

TEST(AdviceOn, NothingIsSaidOfNothing) { EXPECT_TRUE(AdviceOn({}).empty()); }

TEST(AdviceOn, AJobThatRunsWellHearsSo) {
  EXPECT_EQ(AdviceText(FactsOf({SumsOf(100, 97, 98, 10), SumsOf(100, 97, 98, 10)})),
            "nothing stands out: run() took 97 % of the processes' time: \n");
}

TEST(AdviceOn, SmallMiniBatchesHearWhatLargerOnesWouldSave) {
  // Of 1 ms for each mini-batch run() takes 0.4, reading and rows 0.4, waiting 0.2.
  AdviceFacts facts = FactsOf({SumsOf(100'000, 0.4, 0.8, 100), SumsOf(100'000, 0.4, 0.8, 100)});
  facts.mini_batch_size = 10;
  // 200 times as large: 80 ms of run(). 0.2 to 0.6 of each ms is saved, but for a 200th of it.
  EXPECT_EQ(AdviceText(facts),
            "run() takes 0.4 ms for 10 items, and all around it 0.6 ms: a miniBatchSize of 2000 "
            "would save 20 to 60 % of the processes' time\n");
}

TEST(AdviceOn, EachProcessKeepsTwentyMiniBatches) {
  // 1,000 for two processes: 20 times as large leaves 25 for each, 50 times would leave 10.
  AdviceFacts facts = FactsOf({SumsOf(500, 0.4, 0.8, 0.5), SumsOf(500, 0.4, 0.8, 0.5)});
  facts.mini_batch_size = 10;
  EXPECT_THAT(AdviceText(facts), HasSubstr("a miniBatchSize of 200 would save 19 to 57 %"));
  facts = FactsOf({SumsOf(30, 0.4, 0.8, 0.03), SumsOf(30, 0.4, 0.8, 0.03)});
  EXPECT_THAT(AdviceText(facts), Not(HasSubstr("miniBatchSize")));
}

TEST(AdviceOn, ASizeInBytesIsToldAsAFactor) {
  const AdviceFacts facts = FactsOf({SumsOf(100'000, 1, 2, 200)});
  EXPECT_THAT(AdviceText(facts),
              HasSubstr("a miniBatchSize 100 times as large would save 0 to 50 %"));
}

TEST(AdviceOn, WaitsThatHaveACauseOfTheirOwnAreNotTheSizes) {
  AdviceFacts facts = FactsOf({SumsOf(100'000, 0.9, 0.9, 100)});
  facts.waits = Waits::Times{100, 10, 0};
  EXPECT_EQ(AdviceText(facts).find("miniBatchSize"), std::string::npos) << AdviceText(facts);
  EXPECT_THAT(AdviceText(facts),
              HasSubstr("10 % of the processes' time was waiting for the listing of the input"));
}

TEST(AdviceOn, WaitingForTheLastMiniBatches) {
  AdviceFacts facts = FactsOf({SumsOf(10, 1000, 1000, 14), SumsOf(6, 1000, 1000, 14)});
  facts.waits = Waits::Times{28, 0, 8};
  EXPECT_THAT(AdviceText(facts), HasSubstr("29 % of the processes' time was waiting for others"));
  facts.waits->last = 2;
  EXPECT_THAT(AdviceText(facts), Not(HasSubstr("waiting for others")));
}

TEST(AdviceOn, AStoreThatKeptNodesWaitingIsNamed) {
  AdviceFacts facts = FactsOf({SumsOf(100, 100, 100, 10)});
  facts.waits = Waits::Times{10, 0, 0, 2.5, "node 0: throttled by the store s3://photos"};
  const std::string told =
      "for 25 % of the processes' time a store kept them waiting; the last time node 0: throttled "
      "by the store s3://photos";
  EXPECT_THAT(AdviceText(facts), HasSubstr(told));
  facts.async_mode = true;
  EXPECT_THAT(AdviceText(facts), HasSubstr(told)) << "it is counted by the coordinator";
  facts.waits->stores = 0.5;
  EXPECT_THAT(AdviceText(facts), Not(HasSubstr("store")));
}

TEST(AdviceOn, ASlowProcessIsNamedWithItsFigures) {
  const Figures::Sums fast = SumsOf(50, 100, 101, 5.1);
  EXPECT_THAT(AdviceText(FactsOf({fast, SumsOf(10, 500, 501, 5.1), fast, fast})),
              HasSubstr("process001 of node 0 is 5.0 times as slow as the median of the others: "
                        "50 ms an item, not 10 ms"));
  EXPECT_THAT(AdviceText(FactsOf({fast, SumsOf(30, 150, 151, 5.1), fast, fast})),
              Not(HasSubstr("as slow")));
}

TEST(AdviceOn, AFewMiniBatchesProveNothing) {
  const Figures::Sums fast = SumsOf(50, 100, 101, 5.1);
  EXPECT_THAT(AdviceText(FactsOf({fast, SumsOf(4, 500, 501, 2.1), fast})),
              Not(HasSubstr("as slow")));
}

TEST(AdviceOn, ASlowNodeIsNamedRatherThanItsProcesses) {
  AdviceFacts facts = FactsOf({SumsOf(50, 100, 101, 5.1), SumsOf(50, 100, 101, 5.1),
                               SumsOf(10, 300, 301, 5.1), SumsOf(10, 300, 301, 5.1)});
  facts.processes[2].first = {1, 0};
  facts.processes[3].first = {1, 1};
  EXPECT_THAT(AdviceText(facts),
              HasSubstr("node 1 is 3.0 times as slow as the median of the others"));
  EXPECT_THAT(AdviceText(facts), Not(HasSubstr("process000 of node 1")));
}

TEST(AdviceOn, FailedAttemptsCostTime) {
  Figures::Sums sums = SumsOf(100, 100, 100, 10);
  sums.failed = 20;
  sums.failed_run_ns = 2 * kNsInSecond;
  EXPECT_THAT(AdviceText(FactsOf({sums})),
              HasSubstr("20 % of the time in run() went into 20 attempts that failed"));
}

TEST(AdviceOn, ARunThatWaitsAndOneThatUsesManyCores) {
  Figures::Sums sums = SumsOf(100, 100, 100, 10);
  sums.cpu_ns = sums.run_ns / 8;
  EXPECT_THAT(AdviceText(FactsOf({sums})), HasSubstr("run() computes for 13 % of its time"));
  sums.cpu_ns = sums.run_ns * 34 / 10;
  EXPECT_THAT(AdviceText(FactsOf({sums})),
              HasSubstr("run() uses 3.4 cores at once in each process"));
}

TEST(AdviceOn, WhereAttemptsOverlapTheirTimesAreNotAddedUp) {
  AdviceFacts facts = FactsOf({SumsOf(100'000, 1, 2, 10)});
  facts.total.cpu_ns = 0;
  facts.async_mode = true;
  EXPECT_EQ(AdviceText(facts), "nothing stands out: \n");
}

}  // namespace
}  // namespace parallelrun::coordinator
