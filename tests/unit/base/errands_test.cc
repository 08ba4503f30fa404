#include "base/errands.h"

#include <gtest/gtest.h>

#include <future>
#include <vector>

namespace parallelrun {
namespace {

constexpr auto kLong = std::chrono::hours(1);

// The first errand waits until it is let go.
class ErrandsTest : public ::testing::TestWithParam<Errands::AtEnd> {
 protected:
  void Hold() {
    std::promise<void> begun;
    EXPECT_TRUE(errands_.Ask([&] {
      begun.set_value();
      go_.get_future().wait();
      done_.push_back(0);
    }));
    begun.get_future().wait();
  }
  bool Ask(int number) {
    return errands_.Ask([this, number] { done_.push_back(number); });
  }

  std::promise<void> go_;
  std::vector<int> done_;  // by the thread
  Errands errands_{"errands", 2, GetParam()};
};

TEST_P(ErrandsTest, OneAfterTheOtherAndNoMoreThanMayWait) {
  Hold();
  EXPECT_TRUE(Ask(1));
  EXPECT_TRUE(Ask(2));
  EXPECT_FALSE(Ask(3));
  go_.set_value();
  std::promise<void> last;
  while (!errands_.Ask([&] { last.set_value(); })) std::this_thread::yield();
  last.get_future().wait();
  EXPECT_TRUE(errands_.Finish(kLong));
  EXPECT_EQ(done_, (std::vector<int>{0, 1, 2}));
}

TEST_P(ErrandsTest, AtItsEndItTakesNoMoreAndDoesWhatWaitsOrForgetsIt) {
  Hold();
  EXPECT_TRUE(Ask(1));
  EXPECT_FALSE(errands_.Finish(milliseconds(1)));
  EXPECT_FALSE(Ask(2));
  go_.set_value();
  EXPECT_TRUE(errands_.Finish(kLong));
  const bool does = GetParam() == Errands::AtEnd::kDoes;
  EXPECT_EQ(done_, does ? (std::vector<int>{0, 1}) : std::vector<int>{0});
}

INSTANTIATE_TEST_SUITE_P(AtEnd, ErrandsTest,
                         ::testing::Values(Errands::AtEnd::kDoes, Errands::AtEnd::kForgets));

}  // namespace
}  // namespace parallelrun
