// One word that says why, for people to search and for programs to compare: a condition's reason,
// an event's, a verdict's, or the kind of a failure. Only those of words.h exist: `Reason("Typo")`
// does not compile. Plain data; any thread.
#pragma once

#include <string>
#include <string_view>

#include "reasons/words.h"

namespace parallelrun::reasons {

class Reason {
 public:
  // From a literal, wherever a reason is asked for.
  // NOLINTNEXTLINE(google-explicit-constructor)
  consteval Reason(const char* word) : word_(Known(word)) {}

  constexpr std::string_view word() const { return word_; }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::string() const { return std::string(word_); }
  friend constexpr bool operator==(Reason reason, std::string_view word) {
    return reason.word_ == word;
  }

 private:
  static consteval std::string_view Known(std::string_view word) {
    for (const std::string_view one : kWords) {
      if (one == word) return one;
    }
    throw "this reason is not in reasons/words.h";
  }

  std::string_view word_;
};

// A reason that was read: from a status, or from a program that may know others than this one.
struct Said {
  std::string word;
};

}  // namespace parallelrun::reasons
