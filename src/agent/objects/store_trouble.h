// StoreTrouble knows which store gives this node no objects, since when, and what its last answer
// was: a job that stands still for that must say so, and not where its idle processes are in
// Python. Pure; not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace parallelrun::agent {

class StoreTrouble {
 public:
  // A step asks the store at `url` for something. Until its end it is not begun again.
  void Begins(uint64_t step, const std::string& url, WallTime now);
  // `unreachable`: why the store could not be asked now; empty: it has answered, whatever that was.
  void Ends(uint64_t step, std::string_view unreachable, WallTime now);
  // It needed no answer.
  void EndsUnasked(uint64_t step) { at_work_.erase(step); }

  // For people; empty while nothing is amiss. One that is asked for long may be at a large object.
  std::string Text(WallTime now) const;
  // Of those alone that could not be asked, once that has lasted for some seconds.
  std::string Lasting(WallTime now) const;

 private:
  struct Asked {
    std::string url;
    WallTime since{};  // its begin, or the store's last answer to another step
  };
  struct Silent {
    WallTime since{};
    std::string answer;  // the last one
  };
  static std::string TextOf(const std::pair<const std::string, Silent>& one);

  std::map<uint64_t, Asked> at_work_;     // by step
  std::map<std::string, Silent> silent_;  // by URL, since its last answer
};

}  // namespace parallelrun::agent
