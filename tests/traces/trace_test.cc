// The reader of traces itself.
#include "tests/traces/trace.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace parallelrun::trace {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A driver of one number.
struct Counter {
  uint64_t value = 0;
  std::string operator()(Command& command) {
    if (command.name() == "add") {
      value += command.NumberWord("number") * command.Number("times", 1);
      return "";
    }
    if (command.name() == "show") return "it is " + std::to_string(value) + "\nthat is all";
    command.Wrong("nobody knows this command");
    return "";
  }
};

Played PlayCounter(const std::string& text) { return Play(text, Counter()); }

std::vector<std::string> Say(const std::vector<Finding>& findings) {
  std::vector<std::string> said;
  for (const Finding& f : findings) said.push_back(std::to_string(f.line) + ": " + f.text);
  return said;
}

TEST(Trace, WhatSaysTheSameIsLeftAsItIs) {
  const std::string text =
      "# A counter.\n\nadd 2\n----\nok\n\n# More of it.\nadd 3\n    times=2\nshow\n----\nit is "
      "8\nthat is "
      "all\n";
  const Played played = PlayCounter(text);
  EXPECT_THAT(played.differences, IsEmpty());
  EXPECT_THAT(played.mistakes, IsEmpty());
  EXPECT_EQ(played.text, text);
}

TEST(Trace, ADifferenceIsShownAtItsLineAndWrittenDown) {
  const Played played = PlayCounter("add 2\nshow\n----\nit is 2\nthat was all\n\nshow\n");
  EXPECT_THAT(Say(played.differences), ElementsAre("5:   it is 2\n- that was all\n+ that is all\n",
                                                   "8: + it is 2\n+ that is all\n"));
  EXPECT_EQ(played.text,
            "add 2\nshow\n----\nit is 2\nthat is all\n\nshow\n----\nit is 2\nthat is all\n");
  EXPECT_THAT(PlayCounter(played.text).differences, IsEmpty());
}

TEST(Trace, AnOutputThatIsShorterOrLongerIsADifferenceToo) {
  EXPECT_THAT(PlayCounter("show\n----\nit is 0\n").differences, SizeIs(1));
  EXPECT_THAT(PlayCounter("add 1\n----\nok\nok\n").differences, SizeIs(1));
  EXPECT_THAT(PlayCounter("add 1\n").differences, SizeIs(1)) << "nothing stands there yet";
}

TEST(Trace, MistakesNameTheirLineAndEndIt) {
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"\nad 2\n----\nok\n", "2: ad: nobody knows this command"},
           {"add\n----\nok\n", "1: add: says no number"},
           {"add two\n----\nok\n", "1: add: \"two\" is no number"},
           {"add 1 tims=2\n----\nok\n", "1: add: what is tims=…?"},
           {"add 1 2\n----\nok\n", "1: add: what is 2?"},
           {"add 1 times=1 times=2\n----\nok\n", "1: add: times is there twice"},
           {"add 1\nadd\nadd\n----\nok\n", "2: add: says no number"}}) {
    const Played played = PlayCounter(text);
    ASSERT_THAT(played.mistakes, SizeIs(1)) << text;
    EXPECT_THAT(Say({played.mistakes[0]})[0], ::testing::StartsWith(says));
  }
}

TEST(Trace, ValuesMayHaveSpacesAndSeveralParts) {
  Command command("say hello why=\"no room\" to=a,b loud", 7);
  EXPECT_EQ(command.name(), "say");
  EXPECT_TRUE(command.Flag("loud"));
  EXPECT_FALSE(command.Flag("soft"));
  EXPECT_EQ(command.Word("greeting"), "hello");
  EXPECT_EQ(command.Text("why"), "no room");
  EXPECT_THAT(command.List("to"), ElementsAre("a", "b"));
  EXPECT_THAT(command.List("from"), IsEmpty());
  EXPECT_THAT(command.Mistakes(), IsEmpty());
  EXPECT_EQ(command.Text("from"), "");
  EXPECT_THAT(Say(command.Mistakes()), ElementsAre("7: say: needs from=…"));
}

}  // namespace
}  // namespace parallelrun::trace
