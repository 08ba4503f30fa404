// The queue's rules are client-go's: util/workqueue.
#include "kube/work_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace parallelrun::kube {
namespace {

Instant AtMs(int64_t ms) { return Instant(milliseconds(ms)); }

std::string Take(WorkQueueCore& queue, Instant now) {
  const auto taken = queue.Take(now);
  return taken ? taken->key : "";
}

TEST(KubeWorkQueue, AddsCollapse) {
  WorkQueueCore queue;
  queue.Add("a", AtMs(0));
  queue.Add("b", AtMs(1));
  queue.Add("a", AtMs(2));
  EXPECT_EQ(queue.depth(), 2u);
  const auto first = queue.Take(AtMs(10));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->key, "a");
  EXPECT_EQ(first->waited, milliseconds(10));  // since the first of the adds
  EXPECT_EQ(Take(queue, AtMs(10)), "b");
  EXPECT_EQ(Take(queue, AtMs(10)), "");
}

TEST(KubeWorkQueue, AddWhileProcessingComesOnceMoreAfterDone) {
  WorkQueueCore queue;
  queue.Add("a", AtMs(0));
  EXPECT_EQ(Take(queue, AtMs(0)), "a");
  queue.Add("a", AtMs(1));
  queue.Add("a", AtMs(2));
  EXPECT_EQ(Take(queue, AtMs(3)), "") << "one key is never with two workers";
  queue.Done("a", AtMs(4));
  EXPECT_EQ(Take(queue, AtMs(5)), "a");
  queue.Done("a", AtMs(6));
  EXPECT_EQ(Take(queue, AtMs(7)), "");
}

TEST(KubeWorkQueue, ReinsertAfterDone) {
  WorkQueueCore queue;
  queue.Add("a", AtMs(0));
  EXPECT_EQ(Take(queue, AtMs(0)), "a");
  queue.Done("a", AtMs(1));
  queue.Add("a", AtMs(2));
  EXPECT_EQ(Take(queue, AtMs(2)), "a");
}

TEST(KubeWorkQueue, UrgentKeysGoFirstAndTheOthersEveryFourthTime) {
  WorkQueueCore queue;
  for (int i = 0; i < 3; ++i) queue.Add("other" + std::to_string(i), AtMs(0));
  for (int i = 0; i < 6; ++i) queue.Add("urgent" + std::to_string(i), AtMs(1), /*urgent=*/true);
  EXPECT_EQ(queue.depth(), 9u);
  std::vector<std::string> order;
  for (std::string key = Take(queue, AtMs(2)); !key.empty(); key = Take(queue, AtMs(2))) {
    order.push_back(key);
  }
  EXPECT_EQ(order, (std::vector<std::string>{"urgent0", "urgent1", "urgent2", "other0", "urgent3",
                                             "urgent4", "urgent5", "other1", "other2"}));
}

TEST(KubeWorkQueue, AWorkerThatWaitsForALaterTimeIsTakenByAnEarlierOne) {
  WorkQueue queue;
  queue.AddAfter("late", seconds(3600));
  auto taken = std::async(std::launch::async, [&] { return queue.Get(); });
  auto other = std::async(std::launch::async, [&] { return queue.Get(); });
  queue.AddAfter("soon", milliseconds(1));
  queue.Add("now");
  std::set<std::string> got = {*taken.get(), *other.get()};
  EXPECT_EQ(got, (std::set<std::string>{"now", "soon"}));
  queue.ShutDown();
}

TEST(KubeWorkQueue, DelayedKeepsTheEarlierTime) {
  for (const bool earlier_first : {true, false}) {
    WorkQueueCore queue;
    queue.AddAt("a", AtMs(earlier_first ? 50 : 100), AtMs(0));
    queue.AddAt("a", AtMs(earlier_first ? 100 : 50), AtMs(0));
    EXPECT_EQ(queue.waiting(), 1u);
    EXPECT_EQ(queue.NextDue(), AtMs(50));
    EXPECT_EQ(Take(queue, AtMs(49)), "");
    EXPECT_EQ(Take(queue, AtMs(50)), "a");
    queue.Done("a", AtMs(51));
    EXPECT_EQ(Take(queue, AtMs(1000)), "") << "the later time is forgotten";
  }
}

TEST(KubeWorkQueue, DelayedKeysComeInTheOrderOfTheirTimes) {
  WorkQueueCore queue;
  queue.AddAt("late", AtMs(30), AtMs(0));
  queue.AddAt("early", AtMs(20), AtMs(0));
  queue.AddAt("now", AtMs(0), AtMs(0));
  EXPECT_EQ(Take(queue, AtMs(100)), "now");
  EXPECT_EQ(Take(queue, AtMs(100)), "early");
  EXPECT_EQ(Take(queue, AtMs(100)), "late");
}

TEST(KubeWorkQueue, BackOffDoublesUpToTheCapUntilForget) {
  WorkQueueCore queue;
  const auto next = [&queue] {
    const Duration wait = queue.AddRateLimited("a", AtMs(0)) - AtMs(0);
    queue.Take(AtMs(0) + wait);
    queue.Done("a", AtMs(0) + wait);
    return wait;
  };
  for (Duration expected = milliseconds(5); expected < seconds(1000); expected *= 2) {
    EXPECT_EQ(next(), expected);
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(next(), seconds(1000));
  EXPECT_GT(queue.Failures("a"), 100);
  queue.Forget("a");
  EXPECT_EQ(queue.Failures("a"), 0);
  EXPECT_EQ(next(), milliseconds(5));
}

TEST(KubeWorkQueue, ShutDownTakesNoMoreAndGivesWhatIsQueued) {
  WorkQueue queue;
  queue.Add("a");
  queue.AddAfter("later", seconds(3600));
  queue.ShutDown();
  queue.Add("b");
  EXPECT_EQ(queue.Get(), "a");
  queue.Done("a");
  EXPECT_EQ(queue.Get(), std::nullopt);
}

TEST(KubeWorkQueue, DrainWaitsForADirtyKeyToo) {
  WorkQueue queue;
  queue.Add("a");
  ASSERT_EQ(queue.Get(), "a");
  queue.Add("a");
  EXPECT_FALSE(queue.Drain(milliseconds(1)));
  auto drained = std::async(std::launch::async, [&] { return queue.Drain(seconds(60)); });
  queue.Done("a");
  ASSERT_EQ(queue.Get(), "a");
  EXPECT_EQ(queue.processing(), 1u);
  queue.Done("a");
  EXPECT_TRUE(drained.get());
}

TEST(KubeWorkQueue, GetWaitsForADelayedKey) {
  WorkQueue queue;
  queue.AddAfter("a", milliseconds(20));
  EXPECT_EQ(queue.Get(), "a");
}

TEST(KubeWorkQueue, ManyWorkersNeverShareAKey) {
  constexpr int kKeys = 20;
  constexpr int kAdds = 5000;
  WorkQueue queue;
  std::vector<std::atomic<int>> busy(kKeys);
  std::atomic<int> shared{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.Get()) {
        const auto index = static_cast<size_t>(std::stoi(*key));
        if (++busy[index] != 1) ++shared;
        std::this_thread::yield();
        --busy[index];
        queue.Done(*key);
      }
    });
  }
  for (int i = 0; i < kAdds; ++i) queue.Add(std::to_string(i % kKeys));
  EXPECT_TRUE(queue.Drain(seconds(60)));
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(shared, 0);
  EXPECT_EQ(queue.depth(), 0u);
}

// By which /healthz notices a worker that is stuck.
TEST(KubeWorkQueue, TheLongestWorkInProgressIsKnown) {
  struct SetClock final : Clock {
    Instant Now() const override { return now; }
    WallTime WallNow() const override { return {}; }
    Instant now = AtMs(0);
  };
  const auto clock = std::make_shared<SetClock>();
  WorkQueue queue(clock);
  for (const char* key : {"a", "b"}) queue.Add(key);
  EXPECT_EQ(queue.LongestWork(), seconds(0)) << "nobody works";
  const std::string first = *queue.Get();
  clock->now += seconds(10);
  const std::string second = *queue.Get();
  clock->now += seconds(5);
  EXPECT_EQ(queue.LongestWork(), seconds(15));
  queue.Done(first);
  EXPECT_EQ(queue.LongestWork(), seconds(5));
  queue.Done(second);
  EXPECT_EQ(queue.LongestWork(), seconds(0));
}

TEST(KubeWorkQueue, HooksHearOfEverything) {
  int added = 0;
  int retried = 0;
  int waited = 0;
  int worked = 0;
  size_t deepest = 0;
  WorkQueueHooks hooks;
  hooks.added = [&] { ++added; };
  hooks.retried = [&] { ++retried; };
  hooks.waited = [&](Duration) { ++waited; };
  hooks.worked = [&](Duration) { ++worked; };
  hooks.depth = [&](size_t depth) { deepest = std::max(deepest, depth); };
  WorkQueue queue(std::make_shared<SystemClock>(), hooks);
  queue.Add("a");
  queue.Add("b");
  queue.AddRateLimited("c");
  for (int i = 0; i < 3; ++i) queue.Done(*queue.Get());
  EXPECT_EQ(added, 2);
  EXPECT_EQ(retried, 1);
  EXPECT_EQ(waited, 3);
  EXPECT_EQ(worked, 3);
  EXPECT_GE(deepest, 2u);
}

}  // namespace
}  // namespace parallelrun::kube
