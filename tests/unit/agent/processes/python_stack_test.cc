#include "agent/processes/python_stack.h"

#include <gtest/gtest.h>

namespace parallelrun::agent {
namespace {

constexpr char kDump[] =
    "what the script wrote before\n"
    "Thread 0x00007f3a5a7fc700 (most recent call first):\n"
    "  File \"/usr/lib/python3.11/threading.py\", line 324 in wait\n"
    "\n"
    "Current thread 0x00007f3a5b3f0740 [MainThread] (most recent call first):\n"
    "  File \"/usr/lib/python3.11/socket.py\", line 706 in readinto\n"
    "a word of another thread\n"
    "  File \"/code/models/net.py\", line 12 in fetch\n"
    "  File \"/code/score.py\", line 30 in run\n"
    "  File \"/lib/python/parallelrun/worker/main.py\", line 180 in _attempt\n"
    "  File \"/lib/python/start_worker.py\", line 60 in <module>\n"
    "\n"
    "  File \"/code/later.py\", line 1 in later\n";

TEST(PythonStackTest, TheCallsOfTheMainThreadTheInnermostLast) {
  EXPECT_EQ(PythonStack(kDump, "/code", "/lib/python"),
            "run score.py:30, fetch models/net.py:12, readinto /usr/lib/python3.11/socket.py:706 "
            "(models/net.py:12)");
}

TEST(PythonStackTest, AllOfItNamesNoCopyOfTheCode) {
  EXPECT_EQ(WholeStacks("Thread 0x1:\n  File \"/code/a/b.py\", line 1 in f\n"
                        "  File \"/code2/a.py\", line 2 in g\n  \"/code/c\"\n\nno end",
                        "/code"),
            "Thread 0x1:\n  File \"a/b.py\", line 1 in f\n"
            "  File \"/code2/a.py\", line 2 in g\n  \"/code/c\"\n\nno end\n");
  EXPECT_EQ(WholeStacks("", "/code"), "");
}

TEST(PythonStackTest, WithoutACallOfTheScript) {
  const std::string own =
      "Current thread 0x1 (most recent call first):\n"
      "  File \"/lib/python/parallelrun/worker/channel.py\", line 9 in fill\n";
  EXPECT_EQ(PythonStack(own, "/code", "/lib/python"), "no call of the script");
  const std::string library =
      "Current thread 0x1 (most recent call first):\n  File \"/usr/a.py\", line 9 in f\n";
  EXPECT_EQ(PythonStack(library, "/code", "/lib/python"), "f /usr/a.py:9");
}

TEST(PythonStackTest, WhatIsNoStack) {
  for (const char* dump : {"", "nothing", "Current thread 0x1", "Current thread 0x1\n\n",
                           "Current thread 0x1\n  <no Python frame>\n",
                           "Current thread 0x1\n  File \"x\n  File \"\", line \n"}) {
    EXPECT_EQ(PythonStack(dump, "/code", "/lib"), "") << dump;
  }
  EXPECT_EQ(PythonStack("Current thread 0x1\n  File \"/a\x1b\", line 1 in \x1b[31m\n", "/c", "/l")
                .find('\x1b'),
            std::string::npos);
}

}  // namespace
}  // namespace parallelrun::agent
