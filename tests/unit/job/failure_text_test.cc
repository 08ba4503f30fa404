#include "job/failure_text.h"

#include <gtest/gtest.h>

namespace parallelrun::job {
namespace {

TEST(FailureTextTest, ALineAndItsPartsAgain) {
  const FailureParts cases[] = {
      {"ValueError", "no number", "score.py:31"},
      {"my.errors.Bad", "with (parentheses): and colons", "src/s.py:1"},
      {"KeyError", "'a'", "folder (old)/s (2).py:9"},
      {"ValueError", "", ""},
  };
  for (const FailureParts& parts : cases) {
    const FailureParts again = SplitFailure("Exception", JoinFailure(parts, 4096));
    EXPECT_EQ(again.type, parts.type);
    EXPECT_EQ(again.message, parts.message);
    EXPECT_EQ(again.location, parts.location);
  }
  EXPECT_EQ(JoinFailure({"ValueError", "no number", "score.py:31"}, 4096),
            "ValueError: no number (score.py:31)");
}

TEST(FailureTextTest, ALongMessageKeepsItsTypeAndPlace) {
  const std::string text = JoinFailure({"ValueError", std::string(500, 'x'), "score.py:31"}, 100);
  EXPECT_LE(text.size(), 103U);  // the dots of the cut message
  const FailureParts parts = SplitFailure("Exception", text);
  EXPECT_EQ(parts.type, "ValueError");
  EXPECT_EQ(parts.location, "score.py:31");
}

TEST(FailureTextTest, WhatIsNoPlaceAndNoTypeStaysInTheMessage) {
  EXPECT_EQ(SplitFailure("RunTimeout", "run() took longer than 60s (runInvocationTimeout)").message,
            "run() took longer than 60s (runInvocationTimeout)");
  EXPECT_EQ(SplitFailure("Misfit", "a.csv:3: column b").type, "");
  EXPECT_EQ(SplitFailure("Exception", "no colon in it").type, "");
  EXPECT_EQ(SplitFailure("Exception", "two words: and more").type, "");
  EXPECT_EQ(SplitFailure("Exception", "").message, "");
  EXPECT_EQ(SplitFailure("Exception", "a) (:1)").location, "");
}

TEST(FailureTextTest, WhichErrorsAreOfTheProgram) {
  EXPECT_TRUE(OfProgram("Exception", "NameError: name 'x' is not defined (score.py:1)"));
  EXPECT_TRUE(OfProgram("InitFailed", "ModuleNotFoundError: No module named 'x' (score.py:1)"));
  EXPECT_TRUE(OfProgram("BadReturn", "run() returned None."));
  EXPECT_FALSE(OfProgram("Exception", "ValueError: NameError: no (score.py:1)"));
  EXPECT_FALSE(OfProgram("Exception", "KeyError: 'ImportError' (score.py:1)"));
  EXPECT_FALSE(OfProgram("InputUnreadable", "NameError: no"));
}

TEST(FailureTextTest, ADebuggerWithoutATerminalIsAnErrorOfTheProgram) {
  for (const char* kind : {"Exception", "InitFailed"}) {
    EXPECT_TRUE(OfDebugger(kind, "bdb.BdbQuit: A debugger has no terminal here (score.py:3)"));
    EXPECT_TRUE(OfProgram(kind, "bdb.BdbQuit: A debugger has no terminal here (score.py:3)"));
    EXPECT_FALSE(OfDebugger(kind, "ValueError: bdb.BdbQuit: no (score.py:3)"));
  }
  EXPECT_FALSE(OfDebugger("RunTimeout", "bdb.BdbQuit: x"));
}

}  // namespace
}  // namespace parallelrun::job
