#include "base/event_loop.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

namespace parallelrun {
namespace {

class EventLoopTest : public testing::Test {
 protected:
  EventLoopTest() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds_), 0);
    // A test that hangs fails here, not in the test runner.
    guard_ = loop_.After(seconds(20), [this] {
      ADD_FAILURE() << "the loop was not stopped";
      loop_.Stop();
    });
  }
  ~EventLoopTest() override {
    close(fds_[0]);
    close(fds_[1]);
  }
  void Write(int fd, const std::string& text) {
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  EventLoop loop_;
  EventLoop::TimerId guard_;
  int fds_[2];
};

TEST_F(EventLoopTest, TimersFireInOrderAndCancelledOnesDoNot) {
  std::string order;
  loop_.After(milliseconds(20), [&] { order += "c", loop_.Stop(); });
  loop_.After(milliseconds(10), [&] { order += "b"; });
  const auto cancelled = loop_.After(milliseconds(5), [&] { order += "X"; });
  loop_.After(Duration(0), [&] { order += "a", loop_.Cancel(cancelled); });
  loop_.Run();
  EXPECT_EQ(order, "abc");
}

TEST_F(EventLoopTest, CancelBeatsATimerThatIsDue) {
  // Both are due in the same turn; whichever runs first cancels the other.
  int fired = 0;
  EventLoop::TimerId a{}, b{};
  a = loop_.After(Duration(0), [&] { ++fired, loop_.Cancel(b); });
  b = loop_.After(Duration(0), [&] { ++fired, loop_.Cancel(a); });
  loop_.After(milliseconds(10), [&] { loop_.Stop(); });
  loop_.Run();
  EXPECT_EQ(fired, 1);
}

TEST_F(EventLoopTest, PostFromAnotherThreadAndStop) {
  int posted = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) loop_.Post([&] { ++posted; });
    loop_.Post([&] { loop_.Stop(); });
  });
  loop_.Run();
  other.join();
  EXPECT_EQ(posted, 1000);
}

TEST_F(EventLoopTest, StopBeforeRunAndRunAgain) {
  loop_.Stop();
  loop_.Run();
  bool ran = false;
  loop_.Post([&] { ran = true, loop_.Stop(); });
  loop_.Run();
  EXPECT_TRUE(ran);
}

TEST_F(EventLoopTest, ReadableIsToldUntilTheBytesAreTaken) {
  int calls = 0;
  EventLoop::WatchId id{};
  id = loop_.WatchReadable(fds_[0], [&] {
    char byte;
    ASSERT_EQ(read(fds_[0], &byte, 1), 1);  // one byte a call: level, not edge
    if (++calls == 3) {
      loop_.Unwatch(id);
      loop_.After(milliseconds(5), [&] { loop_.Stop(); });
    }
  });
  Write(fds_[1], "abcde");
  loop_.Run();
  EXPECT_EQ(calls, 3);
}

TEST_F(EventLoopTest, ReadAndWriteOfOneDescriptor) {
  std::string order;
  EventLoop::WatchId reading{}, writing{};
  writing = loop_.WatchWritable(fds_[0], [&] {
    order += "w";
    loop_.Unwatch(writing);
    Write(fds_[1], "x");
  });
  reading = loop_.WatchReadable(fds_[0], [&] {
    order += "r";
    loop_.Unwatch(reading);
    loop_.Stop();
  });
  loop_.Run();
  EXPECT_EQ(order, "wr");
}

TEST_F(EventLoopTest, EndOfFileIsReadable) {
  loop_.WatchReadable(fds_[0], [&] { loop_.Stop(); });
  shutdown(fds_[1], SHUT_RDWR);
  loop_.Run();
}

TEST_F(EventLoopTest, AnUnwatchedNumberMayBeReused) {
  const auto id = loop_.WatchReadable(fds_[0], [] { FAIL(); });
  loop_.Unwatch(id);
  loop_.Unwatch(id);
  close(fds_[0]);
  close(fds_[1]);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds_), 0);
  loop_.WatchReadable(fds_[0], [&] { loop_.Stop(); });
  Write(fds_[1], "x");
  loop_.Run();
}

TEST_F(EventLoopTest, SignalsComeAsCallbacks) {
  int got = 0;
  loop_.OnSignal(SIGUSR1, [] { FAIL() << "replaced"; });
  loop_.OnSignal(SIGUSR1, [&] {
    if (++got == 2) return loop_.Stop();
    raise(SIGUSR1);
  });
  raise(SIGUSR1);
  loop_.Run();
  EXPECT_EQ(got, 2);
}

TEST_F(EventLoopTest, CallbacksMayCancelWhileTheLoopIsDestroyed) {
  auto loop = std::make_unique<EventLoop>();
  struct CancelsAtEnd {
    EventLoop& loop;
    EventLoop::TimerId id;
    ~CancelsAtEnd() { loop.Cancel(id); }
  };
  const auto id = loop->After(seconds(1), [] {});
  std::shared_ptr<CancelsAtEnd> held(new CancelsAtEnd{*loop, id});
  loop->Post([held] {});
  loop->After(seconds(1), [held] {});
  loop->WatchReadable(fds_[0], [held] {});
  held.reset();
  loop.reset();
}

}  // namespace
}  // namespace parallelrun
