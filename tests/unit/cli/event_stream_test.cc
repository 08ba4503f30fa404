#include "cli/run/event_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"

namespace parallelrun::cli {
namespace {

using Keep = EventStream::Keep;

struct EventStreamTest : ::testing::Test {
  EventStreamTest() {
    signal(SIGPIPE, SIG_IGN);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    reads = Fd(ends[0]);
    writes = Fd(ends[1]);
  }
  // All until the other end closes.
  std::string Read() const {
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(reads.get(), buffer, sizeof buffer)) > 0;) {
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

  Fd reads;
  Fd writes;
};

TEST_F(EventStreamTest, LinesComeInTheirOrder) {
  {
    EventStream stream(writes.get());
    stream.Add("one");
    stream.Add("two", Keep::kAlways);
  }
  writes.Close();
  EXPECT_EQ(Read(), "one\ntwo\n");
}

// The writer is held by the first line, which is more than the pipe takes.
TEST_F(EventStreamTest, WhoDoesNotReadGetsTheNewestAndTheLast) {
  fcntl(writes.get(), F_SETPIPE_SZ, 4096);
  const std::string big(100'000, 'x');
  Thread reader;
  std::string text;
  {
    EventStream stream(writes.get());
    stream.Add(big);
    char first = 0;
    ASSERT_EQ(read(reads.get(), &first, 1), 1);  // it is at the big one
    stream.Add("old", Keep::kNewest);
    for (size_t i = 0; i < EventStream::kMostWaiting; ++i) stream.Add("some");
    stream.Add("too many");
    stream.Add("new", Keep::kNewest);
    stream.Add("end", Keep::kAlways);
    reader = Thread("reader", [&] { text = Read(); });
  }
  writes.Close();
  reader.join();
  EXPECT_EQ(text.find("old"), std::string::npos);
  EXPECT_EQ(text.find("too many"), std::string::npos);
  EXPECT_NE(text.find("some\nnew\nend\n"), std::string::npos) << text.substr(text.size() - 40);
}

TEST_F(EventStreamTest, AReaderThatHasGoneIsNotWaitedFor) {
  reads.Close();
  EventStream stream(writes.get());
  for (int i = 0; i < 1000; ++i) stream.Add("line");
}

}  // namespace
}  // namespace parallelrun::cli
