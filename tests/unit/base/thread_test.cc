#include "base/thread.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>

#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/join_threads.h"
#include "base/log.h"

namespace parallelrun {
namespace {

TEST(ThreadTest, ItHasItsName) {
  std::array<char, 16> name{};
  Thread thread("a name that is long", [&] { prctl(PR_GET_NAME, name.data()); });
  thread.join();
  EXPECT_EQ(std::string(name.data()), "a name that is ");
}

TEST(ThreadTest, WhoWaitsForItMayGiveUp) {
  std::promise<void> released;
  Thread thread("hangs", [&] { released.get_future().wait(); });
  EXPECT_FALSE(thread.JoinFor(std::chrono::milliseconds(1)));
  EXPECT_TRUE(thread.joinable());
  released.set_value();
  EXPECT_TRUE(thread.JoinFor(std::chrono::hours(1)));
  EXPECT_FALSE(thread.joinable());
}

TEST(ThreadTest, WhoLeavesItBehindIsToldSo) {
  auto released = std::make_shared<std::promise<void>>();
  auto gone_on = std::make_shared<std::promise<void>>();
  Thread thread("hangs", [released, gone_on] {
    released->get_future().wait();
    gone_on->set_value();
  });
  EXPECT_FALSE(thread.JoinOrLeave(std::chrono::milliseconds(1)));
  EXPECT_FALSE(thread.joinable());
  EXPECT_TRUE(Thread::AnyLeft());
  released->set_value();
  gone_on->get_future().wait();
}

TEST(ThreadTest, AllThatEndAreJoinedAndTheOthersLeft) {
  std::vector<Thread> threads;
  EXPECT_TRUE(JoinOrLeaveAll(threads, std::chrono::hours(1)));

  threads.emplace_back("ends", [] {});
  threads.emplace_back("ends", [] {});
  EXPECT_TRUE(JoinOrLeaveAll(threads, std::chrono::hours(1)));
  EXPECT_TRUE(threads.empty());

  auto released = std::make_shared<std::promise<void>>();
  auto gone_on = std::make_shared<std::promise<void>>();
  threads.emplace_back("hangs", [released, gone_on] {
    released->get_future().wait();
    gone_on->set_value();
  });
  threads.emplace_back("ends", [] {});
  EXPECT_FALSE(JoinOrLeaveAll(threads, std::chrono::milliseconds(1)));
  EXPECT_TRUE(threads.empty());
  released->set_value();
  gone_on->get_future().wait();
}

void Die(void (*raise)()) {
  SetUpLogging(false, LogLevel::kInfo);  // to stderr
  Thread thread("reports", raise);
  thread.join();
}

TEST(ThreadDeathTest, WhatItThrowsEndsTheProgramInWords) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(Die([] { throw std::runtime_error("no such folder"); }),
              testing::ExitedWithCode(kThreadFailed), "thread \"reports\".*no such folder");
  EXPECT_EXIT(Die([] { throw 7; }), testing::ExitedWithCode(kThreadFailed), "reports.*unknown");
}

}  // namespace
}  // namespace parallelrun
