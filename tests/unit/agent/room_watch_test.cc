#include "agent/room_watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "base/event_loop.h"

namespace parallelrun::agent {
namespace {

constexpr Duration kForEver = std::chrono::hours(24);

TEST(RoomWatch, SaysWhatALookFindsThatBeginsNow) {
  std::atomic<bool> full{false};
  RoomWatch watch({[&full] { return std::string(full ? "full" : ""); }, [] {}, kForEver, kForEver});
  EXPECT_EQ(watch.Now(), "");
  full = true;
  EXPECT_EQ(watch.Now(), "full");
  EXPECT_EQ(watch.Last(), "full");
  full = false;
  EXPECT_EQ(watch.Now(), "");
}

TEST(RoomWatch, TellsByItselfWhatIsNew) {
  std::atomic<bool> full{false};
  std::promise<void> told;  // a second time would throw
  RoomWatch watch({[&full] { return std::string(full ? "full" : ""); },
                   [&told] { told.set_value(); }, milliseconds(1)});
  full = true;
  told.get_future().wait();
  EXPECT_EQ(watch.Last(), "full");
  EXPECT_EQ(watch.Now(), "full");
}

// A loop that asks goes on, with what was found before.
TEST(RoomWatch, AFileSystemThatHangsHoldsUpNobodyElse) {
  std::promise<void> hang;
  std::promise<void> hangs;
  std::atomic<int> looks{0};
  std::atomic<bool> told{false};
  const auto held = std::make_shared<int>();
  auto watch = std::make_unique<RoomWatch>(RoomWatch::Options{
      [&, gate = hang.get_future().share(), of_thread = held] {
        if (++looks == 1) return std::string();
        if (looks == 2) hangs.set_value();
        gate.wait();
        return std::string("full");
      },
      [&told] { told = true; }, milliseconds(1), milliseconds(1), milliseconds(1)});
  hangs.get_future().wait();
  EventLoop loop;
  int turns = 0;
  const std::function<void()> turn = [&] {
    EXPECT_EQ(watch->Now(), "");
    if (++turns == 10) return loop.Stop();
    loop.Post(turn);
  };
  loop.Post(turn);
  loop.Run();
  watch.reset();
  EXPECT_TRUE(Thread::AnyLeft());
  hang.set_value();
  while (held.use_count() > 1) std::this_thread::yield();  // the thread has ended
  EXPECT_FALSE(told) << "whom it would tell may be gone";
}

}  // namespace
}  // namespace parallelrun::agent
