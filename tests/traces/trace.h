// Traces: scenarios in plain text, commands in and decisions out (README.md says how they look).
// Each folder here has a driver, which says what the commands do; this is what reads the texts,
// compares, and rewrites. Test code: one thread, no state between two texts.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace parallelrun::trace {

// What is wrong at a line of a text.
struct Finding {
  int line = 0;  // from 1
  std::string text;
};

// One line of commands, cut into words. What a driver does not ask for, and what it asks for in
// vain, is a mistake of the text: nobody's typing error passes for a scenario.
class Command {
 public:
  Command(std::string_view text, int line);

  const std::string& name() const { return name_; }
  int line() const { return line_; }

  // The next word that has no name, such as 0 in "join 0 agent=a"; `what` is for the message.
  std::string Word(const char* what);
  uint64_t NumberWord(const char* what);
  // The words without a name that are left.
  std::vector<std::string> Words();
  // A word that is there or not, such as "unheard".
  bool Flag(const std::string& word);

  // key=value, or key="a value with spaces". Without `otherwise` it must be there.
  bool Has(const std::string& key) const { return named_.contains(key); }
  std::string Text(const std::string& key);
  std::string Text(const std::string& key, const std::string& otherwise);
  uint64_t Number(const std::string& key);
  uint64_t Number(const std::string& key, uint64_t otherwise);
  // key=a,b,c; empty when it is not there.
  std::vector<std::string> List(const std::string& key);

  // All of them, for a command that passes them on.
  std::map<std::string, std::string> Named();

  // A mistake of the text that the driver finds, such as a node that nobody has named.
  void Wrong(const std::string& why) { mistakes_.push_back({line_, name_ + ": " + why}); }
  uint64_t NumberIn(const std::string& text);

  // What was wrong; if nothing was, the words that nobody took.
  std::vector<Finding> Mistakes() const;

 private:
  std::string name_;
  int line_;
  std::vector<std::string> words_;
  std::map<std::string, std::string> named_;
  std::vector<std::string> untaken_;  // keys
  std::vector<Finding> mistakes_;
};

// Does a command and says what came of it, in lines; "" is written as "ok".
using Driver = std::function<std::string(Command&)>;

struct Played {
  std::string text;                  // the same text with the outputs of now
  std::vector<Finding> differences;  // between the outputs of now and those that stand there
  std::vector<Finding> mistakes;     // of the text; it is not played beyond the first
};

Played Play(std::string_view text, const Driver& driver);

// What a reader needs to see of two outputs that differ: "-" before what stands there, "+" before
// what is said now, " " before what is the same.
std::string Difference(const std::vector<std::string>& stands, const std::vector<std::string>& now);

// The texts of a folder of tests/traces, in order: "coordinator/a_lease_lost.txt".
std::vector<std::string> Texts(const std::string& folder);

// For INSTANTIATE_TEST_SUITE_P: the file's name without its folder and ".txt".
std::string NameOf(const testing::TestParamInfo<std::string>& text);

// Plays one of Texts() and fails the test, with file and line, where it says something else. With
// PARALLELRUN_REWRITE_TRACES=1 it writes the outputs of now into the file instead.
void Check(const std::string& text, const Driver& driver);

}  // namespace parallelrun::trace
